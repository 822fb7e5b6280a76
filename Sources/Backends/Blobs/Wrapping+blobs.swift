// SPDX-License-Identifier: Apache-2.0

// Blobs as they are in a remote, unencrypted or under the account's key. Their content is the same, except for the
// names of segments and the hashes of keys.

internal import BackendSupport
package import PropertyList
package import Replication
package import Sealing

extension Wrapping {
    /// The maximum length of a head in a remote, in bytes.
    var headLimit: Int { isSealed ? SealedBlob.Limit.head : Head.limit }
    /// The maximum length of a segment in a remote, in bytes.
    var segmentLimit: Int { isSealed ? SealedBlob.Limit.segment : Segment.limit }

    private var isSealed: Bool { if case .sealed = self { true } else { false } }

    /// Returns a segment's bytes in a remote, and its name.
    func named(_ content: [UInt8]) -> (bytes: [UInt8], name: Bits128) {
        let (bytes, name) = segment(content)
        return (bytes, Bits128(prefixOf: name))
    }

    /// Returns a segment's content; `nil` if it isn't the segment of this name. A sealed one of a newer format isn't
    /// either, because the head that names it is one that this version can read.
    func content(of bytes: [UInt8], named name: Bits128) -> [UInt8]? {
        switch self {
        case .plain: return Bits128(digestOf: bytes) == name ? bytes : nil
        case .sealed(let keys):
            guard let blob = try? SealedBlob(segment: bytes, keys), Bits128(prefixOf: blob.salt) == name else {
                return nil
            }
            return blob.content
        }
    }

    /// Returns a head's bytes in a remote, in another length than the previous head's.
    /// - Throws: `RemoteError.full` if no reader would accept it.
    func bytes(
        of written: WrittenHead, unlikeLength previous: Int?, random: () -> UInt64
    ) throws(RemoteError) -> [UInt8] {
        let content: [UInt8]
        switch self {
        case .plain: content = written.encoded(unlikeLength: previous)
        case .sealed: content = written.encoded()
        }
        guard content.count <= Head.limit else {
            throw RemoteError(
                .full,
                "The account has more stores than fit into one device's head. Remove stores that are not needed.")
        }
        guard case .sealed(let keys) = self else { return content }
        return SealedBlob.seal(
            head: content, origin: written.head.origin.bits, sequence: written.head.sequence,
            random: (random(), random()), unlikeLength: previous, keys)
    }

    /// Reads a head.
    /// - Parameter memory: counts what decoding takes; `nil` for what needs no count.
    func head(_ bytes: [UInt8], in memory: DecodingMemory? = nil) throws(BlobFlaw) -> WrittenHead {
        switch self {
        case .plain:
            do { return try WrittenHead(decoding: bytes, in: memory) } catch {
                throw error == .tooNew && Envelope.isSealed(bytes) ? .otherKey : error
            }
        case .sealed(let keys):
            let blob: SealedBlob
            do throws(SealingFlaw) { blob = try SealedBlob(head: bytes, keys) } catch { throw BlobFlaw(error) }
            let written = try WrittenHead(decoding: blob.content, in: memory)
            guard blob.kind == .head(origin: written.head.origin.bits) || !Rule.boundHeader.isOn,
                written.head.account == Bits128(keys.identifier)
            else { throw .damaged("its content is not what its header says") }
            return written
        }
    }

}

extension Wrapping: SegmentWriter {
    /// Returns the hash by which a key belongs to a bucket.
    package func hash(of key: Key) -> Int { bucketHash(of: Array(key.string.utf8)) }

    package func write(
        _ entries: [Key: Entry], in bucket: Bucket, of store: String
    ) -> ([UInt8], name: Bits128, bytes: Int) {
        let (bytes, name) = named(Segment(store: store, bucket: bucket, entries: entries).encoded())
        return (bytes, name, bytes.count)
    }

    package func write(_ vector: VersionVector) -> ([UInt8], name: Bits128) { named(VectorSegment.encode(vector)) }
}

extension Bits128 {
    /// Converts the identifier of an encrypted account.
    package init(_ identifier: KeyIdentifier) { self.init(high: identifier.high, low: identifier.low) }
}

extension KeyIdentifier {
    init(_ identifier: Bits128) { self.init(high: identifier.high, low: identifier.low) }
}

extension BlobFlaw {
    init(_ flaw: SealingFlaw) {
        self =
            switch flaw {
            case .foreign: .foreign
            case .plain, .otherKey: .otherKey
            case .tooNew: .tooNew
            case .tooOld: .tooOld
            case .damaged(let clause): .damaged(clause)
            }
    }
}
