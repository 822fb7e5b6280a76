// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing

/// The length of a head, in bytes, above which a new index is written. Each upload writes a head, but few an index.
enum IndexLimits {
    static let headBytes = 3 << 10
    /// The limit just after a large segment was written, so that an index is written with it only if it can't wait.
    static let headBytesWithSegment = 12 << 10
}

/// Writes the segments that a head names, and cuts the head over the index that makes it shortest.
final class HeadWriter<Storage: BlobStorage> {
    private let account: BlobAccount<Storage>
    private let segments: SegmentFolder<Storage>
    private let parts: PartReader<Storage>
    /// Whether a draft since the last head has a segment longer than ``IndexLimits/headBytes``.
    private var hasFolded = false

    init(_ segments: SegmentFolder<Storage>, _ parts: PartReader<Storage>, of account: BlobAccount<Storage>) {
        (self.segments, self.parts, self.account) = (segments, parts, account)
    }

    /// Writes the segments of a draft that the remote lacks.
    func ensure(_ draft: PartDraft<Wrapping>, present: Set<Bits128>) async throws(RemoteError) {
        for (name, bytes) in draft.segments.sorted(by: { $0.key < $1.key }) {
            try await segments.ensure(name, bytes, isListed: present.contains(name))
            hasFolded = hasFolded || bytes.count > IndexLimits.headBytes
        }
        parts.note(draft)
    }

    /// Cuts a head over the best index in the remote, and writes a new index if the head is too long even so.
    func cut(_ head: Head, present: Set<Bits128>) async throws(RemoteError) -> WrittenHead {
        var best: (written: WrittenHead, length: Int)?
        let indexes = parts.indexes.filter { present.contains($0.key) }.sorted { $0.key < $1.key }
        for (name, index) in [(.zero, [:])] + indexes {
            let written = try await cut(head, over: index, named: name)
            let length = written.encoded().count
            if best.map({ length < $0.length }) ?? true { best = (written, length) }
        }
        let most = hasFolded ? IndexLimits.headBytesWithSegment : IndexLimits.headBytes
        hasFolded = false
        if let best, best.length <= most { return best.written }
        var index: [String: WrittenPart] = [:]
        for (store, part) in head.parts { index[store] = part.written(over: try await parts.contextBase(of: part)) }
        let (bytes, name) = try account.wrapping.named(Index.encode(index))
        try await segments.ensure(name, bytes, isListed: present.contains(name))
        parts.note(index: name, head.parts)
        return try await cut(head, over: head.parts, named: name)
    }

    private func cut(
        _ head: Head, over index: [String: Head.Part], named name: Bits128
    ) async throws(RemoteError) -> WrittenHead {
        let wrapping = try account.wrapping
        var written = WrittenHead(
            head: head, absent: Set(index.keys.filter { head.parts[$0] == nil }), parts: [:])
        written.head.index = name
        written.head.parts = [:]
        for (store, part) in head.parts where index[store] != part {
            if let part = index[store].flatMap({ part.written(over: $0, wrapping) }) {
                written.parts[store] = part
            } else {
                written.parts[store] = part.written(over: try await parts.contextBase(of: part))
            }
        }
        return written
    }
}
