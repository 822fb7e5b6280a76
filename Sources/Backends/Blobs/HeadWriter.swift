// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing

/// When an index is written anew: a head costs that much each time, an index once in a while.
enum IndexLimits {
    static let headBytes = 3 << 10
    /// Not together with a bucket, unless it can't wait.
    static let headBytesWithSegment = 12 << 10
}

/// Writes the segments that a head names, and cuts the head itself: over the index over which it is shortest.
final class HeadWriter<Storage: BlobStorage> {
    private let account: BlobAccount<Storage>
    private let segments: SegmentFolder<Storage>
    private let parts: PartReader<Storage>
    /// More than a head was written since the last one.
    private var hasFolded = false

    init(_ segments: SegmentFolder<Storage>, _ parts: PartReader<Storage>, of account: BlobAccount<Storage>) {
        (self.segments, self.parts, self.account) = (segments, parts, account)
    }

    /// Sees to it that what a draft has written is there.
    func ensure(_ draft: PartDraft<Wrapping>, present: Set<Bits128>) async throws(RemoteError) {
        for (name, bytes) in draft.segments.sorted(by: { $0.key < $1.key }) {
            try await segments.ensure(name, bytes, isListed: present.contains(name))
            hasFolded = hasFolded || bytes.count > IndexLimits.headBytes
        }
        parts.note(draft)
    }

    /// Cuts a head, and writes a new index if it is long all the same.
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
