// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication
internal import Sealing

/// The result of reading the segments of a part's base.
enum BaseContent {
    case entries([Key: Entry])
    /// A segment is missing or damaged, and may still arrive. The sentence, if any, is for users.
    case lacking(String?)
    /// A segment is as it was written, but corrupt. The sentence is for users.
    case corrupt(String)
}

/// The result of reading a part.
enum PartContent {
    case state(StoreState)
    /// A segment is missing or damaged, and may still arrive. The sentence, if any, is for users.
    case lacking(String?)
    /// The part is as it was written, but corrupt. The sentence is for users.
    case corrupt(String)
}

/// The content of a state, independent of how it is cut.
struct StateContent: Equatable {
    /// The digests of the entries.
    let entries: [Key: Bits128]
    let vector: VersionVector
}

/// Reads from segments the parts of heads, and the states of parts, and caches what the segments contain.
final class PartReader<Storage: BlobStorage> {
    private let account: BlobAccount<Storage>
    private let segments: SegmentFolder<Storage>
    /// This account's share of the memory that all accounts may hold.
    private let share: RemoteBudget.Share
    /// The contents of segments by name: the digests of a bucket's entries, a version vector, an index's parts.
    private var contents: [Bits128: [Key: Bits128]] = [:]
    private var vectors: [Bits128: VersionVector] = [:]
    private(set) var indexes: [Bits128: [String: Head.Part]] = [:]

    init(_ segments: SegmentFolder<Storage>, of account: BlobAccount<Storage>, _ share: RemoteBudget.Share) {
        (self.segments, self.account, self.share) = (segments, account, share)
    }

    // MARK: Memory

    /// Caches the contents of a draft's segments.
    func note(_ draft: PartDraft<Wrapping>) {
        contents.merge(draft.contents) { $1 }
        if draft.segments[draft.part.vectorSegment] != nil {
            vectors[draft.part.vectorSegment] = draft.part.vector
        }
    }

    /// Caches an index that was written.
    func note(index name: Bits128, _ parts: [String: Head.Part]) { indexes[name] = parts }

    /// Drops the cached contents of all segments except these.
    func forget(besides named: Set<Bits128>) {
        contents = contents.filter { named.contains($0.key) }
        vectors = vectors.filter { named.contains($0.key) }
        indexes = indexes.filter { named.contains($0.key) }
    }

    /// Releases the memory of what was read, except for the cache. The share doesn't grow, so this can't fail.
    func forgetNews() {
        let remembered = contents.values.reduce(0) { $0 + $1.count * RemoteHoldings.entry / 2 }
        try? share.hold { ($0.news, $0.remembered) = (0, min(remembered, $0.news + $0.remembered)) }
    }

    // MARK: Parts

    /// Resolves the parts of a head. If a part can't be resolved, the head is not whole.
    func resolveParts(_ written: WrittenHead, _ found: inout FoundHead) async throws(RemoteError) {
        let wrapping = try account.wrapping
        var index: [String: Head.Part] = [:]
        if written.head.index != .zero {
            (index, found.isWhole) = try await readIndex(written.head.index, &found.problems)
        }
        found.head.parts = index
        for store in written.absent { found.head.parts[store] = nil }
        for (store, part) in written.parts {
            found.head.parts[store] = nil
            if case .over = part.form, index[store] == nil {
                // The index, or the version vector of its part, could not be read.
                found.isWhole = false
                continue
            }
            guard let vector = try await readVector(part.vectorSegment, &found.problems) else {
                found.isWhole = false
                continue
            }
            found.head.parts[store] = try resolved(part, over: index[store], vector, wrapping)
            if found.head.parts[store] == nil {
                found.problems.append("The part of the store \(store) in h/\(found.name) is corrupt.")
            }
        }
        // All of the index stays in memory, also what the head replaces.
        found.footprint = index.footprint + found.head.parts.filter { written.parts[$0.key] != nil }.footprint
    }

    /// Returns a part with its version vector and its tail. Where it adds to those of the segment or of the index, they take
    /// memory of their own.
    private func resolved(
        _ part: WrittenPart, over base: Head.Part?, _ vector: VersionVector, _ wrapping: Wrapping
    ) throws(RemoteError) -> Head.Part? {
        var vectors = [vector, part.vector]
        var size = 0
        if case .over = part.form, let base {
            vectors.append(base.vector)
            size = base.tail.footprint
        }
        vectors.removeAll(where: \.dots.isEmpty)
        if vectors.count > 1 { size += vectors.reduce(0) { $0 + $1.dots.count * MemoryLayout<Dot>.stride } }
        try share.hold { $0.news += size }
        return part.part(over: base, vector: vector, wrapping)
    }

    /// Reads an index.
    /// - Returns: the parts that could be resolved, and whether these are all.
    private func readIndex(
        _ name: Bits128, _ problems: inout [String]
    ) async throws(RemoteError) -> ([String: Head.Part], Bool) {
        if let parts = indexes[name] { return (parts, true) }
        guard let written = try await readNamed(name, &problems, Index.decode) else { return ([:], false) }
        let wrapping = try account.wrapping
        var parts: [String: Head.Part] = [:]
        for (store, part) in written {
            guard let vector = try await readVector(part.vectorSegment, &problems) else { continue }
            parts[store] = try resolved(part, over: nil, vector, wrapping)
        }
        if parts.count == written.count { indexes[name] = parts }
        return (parts, parts.count == written.count)
    }

    /// Reads a version vector's segment; `nil` if it can't be read. The name zero stands for an empty vector.
    private func readVector(_ name: Bits128, _ problems: inout [String]) async throws(RemoteError) -> VersionVector? {
        if name == .zero { return VersionVector() }
        if let vector = vectors[name] { return vector }
        let vector = try await readNamed(name, &problems, VectorSegment.decode)
        vectors[name] = vector
        return vector
    }

    private func readNamed<Content>(
        _ name: Bits128, _ problems: inout [String],
        _ decode: ([UInt8], DecodingMemory) throws(BlobFlaw) -> Content
    ) async throws(RemoteError) -> Content? {
        let bytes: [UInt8]
        switch try await segments.read(name) {
        case .absent: return nil
        case .damaged(let sentence):
            problems.append(sentence)
            return nil
        case .bytes(let content): bytes = content
        }
        let memory = DecodingMemory(in: share)
        do throws(BlobFlaw) { return try decode(bytes, memory) } catch {
            try memory.fail()
            if error == .tooNew { throw RemoteError.tooNew }
            problems.append("The file s/\(name) is corrupt.")
            return nil
        }
    }

    /// Returns the version vector in a part's segment. Throws `RemoteError.unavailable` if it can't be read.
    func contextBase(of part: Head.Part) async throws(RemoteError) -> VersionVector {
        var problems: [String] = []
        guard let vector = try await readVector(part.vectorSegment, &problems) else {
            throw RemoteError(.unavailable, "The file s/\(part.vectorSegment) is missing. The service retries.")
        }
        return vector
    }

    // MARK: States

    /// Reads a part's state.
    func readState(of part: Head.Part, store: String) async throws(RemoteError) -> PartContent {
        let base: [Key: Entry]
        switch try await readBase(part.base, store: store) {
        case .lacking where !Rule.wholeStates.isOn: return .state(part.state(over: [:]))
        case .lacking(let sentence): return .lacking(sentence)
        case .corrupt(let sentence): return .corrupt(sentence)
        case .entries(let entries): base = entries
        }
        let state = part.state(over: base)
        let digests = StateDigests(of: state, store: store)
        guard digests.state == part.digest else {
            return .corrupt("A device's published state of the store \(store) doesn't match its digest.")
        }
        guard state.entries.count <= StoreBounds.entries, digests.totalSize <= StoreBounds.bytes else {
            return .corrupt(tooLarge(store))
        }
        return .state(state)
    }

    /// Reads the entries of a base.
    private func readBase(_ base: [BaseSegment], store: String) async throws(RemoteError) -> BaseContent {
        let wrapping = try account.wrapping
        var entries: [Key: Entry] = [:]
        var size = 0
        for part in base where part.name != .zero {
            let name = part.name
            let bytes: [UInt8]
            switch try await segments.read(name) {
            case .absent: return .lacking(nil)
            case .damaged(let sentence): return .lacking(sentence)
            case .bytes(let content): bytes = content
            }
            size += bytes.count
            let memory = DecodingMemory(in: share)
            let segment: Segment
            do throws(BlobFlaw) { segment = try Segment(decoding: bytes, wrapping, in: memory) } catch {
                try memory.fail()
                if error == .tooNew { throw RemoteError.tooNew }
                return .corrupt("The file s/\(name) is corrupt.")
            }
            guard segment.store == store, segment.bucket == part.bucket else {
                return .corrupt("The file s/\(name) is not of the store \(store).")
            }
            if contents[name] == nil {
                contents[name] = StateDigests(of: StoreState(entries: segment.entries), store: store).entries
            }
            let more = RemoteHoldings.entry - EntryLimits.memory
            try share.hold { $0.news += 2 * bytes.count + segment.entries.count * more }
            entries.merge(segment.entries) { $1 }
            guard entries.count <= StoreBounds.entries, size <= Segment.limit else {
                return .corrupt(tooLarge(store))
            }
        }
        return .entries(entries)
    }

    private func tooLarge(_ store: String) -> String {
        "The store \(store) has grown too large to be synchronised."
    }

    // MARK: Contents

    /// Returns a part's content; `nil` if not all of it can be read.
    func content(of part: Head.Part, store: String) async throws(RemoteError) -> StateContent? {
        guard var entries = try await contents(of: part.base, store: store) else { return nil }
        for key in part.removed { entries[key] = nil }
        entries.merge(StateDigests(of: StoreState(entries: part.tail), store: store).entries) { $1 }
        return StateContent(entries: entries, vector: part.vector)
    }

    /// Returns the digests of the entries in a base; `nil` if not all of it can be read.
    func contents(of base: [BaseSegment], store: String) async throws(RemoteError) -> [Key: Bits128]? {
        var found: [Key: Bits128] = [:]
        for segment in base where segment.name != .zero {
            if contents[segment.name] == nil {
                guard case .entries = try await readBase([segment], store: store) else { return nil }
            }
            found.merge(contents[segment.name] ?? [:]) { $1 }
        }
        return found
    }

    /// Returns how many segments of a base are not cached and would have to be read.
    func unknownSegments(of base: [BaseSegment]) -> Int { base.names.count { contents[$0] == nil } }
}
