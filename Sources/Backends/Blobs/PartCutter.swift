// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// Chooses among the ways in which devices have cut a store.
final class PartCutter<Storage: BlobStorage> {
    private let segments: SegmentFolder<Storage>
    private let parts: PartReader<Storage>

    init(_ segments: SegmentFolder<Storage>, _ parts: PartReader<Storage>) {
        (self.segments, self.parts) = (segments, parts)
    }

    /// Returns the way of cutting a state that all devices prefer, among those in the remote; `nil` if there is none.
    /// - Parameters:
    ///   - content: the state's content; `nil` to read it from `own`.
    ///   - own: this device's published part, if it has this state and its segments are in the remote.
    func shared(
        _ digest: Bits128, _ content: StateContent?, of store: String, own: Head.Part?, among candidates: [Head.Part]
    ) async throws(RemoteError) -> Head.Part? {
        var (shared, content) = (own, content)
        for part in candidates where part.digest == digest && part != shared {
            if let shared, !part.isPreferable(to: shared) { continue }
            guard try await segments.areGood(part.segmentNames) else { continue }
            // A head may claim this state for a part that doesn't have it, and so would a device that adopted the part.
            if content == nil, let own { content = try await parts.content(of: own, store: store) }
            guard let content, try await parts.content(of: part, store: store) == content else { continue }
            shared = part
        }
        return shared
    }

    /// Chooses the base over which to cut a state, and reads the version vector in its segment.
    func base(
        for digests: StateDigests, of store: String, among candidates: [Head.Part]
    ) async throws(RemoteError) -> (choice: BaseChoice, vector: VersionVector) {
        var choice = BaseChoice(for: digests)
        for part in candidates {
            guard choice.isWorth(reading: parts.unknownSegments(of: part.base)),
                let contents = try await parts.contents(of: part.base, store: store)
            else { continue }
            choice.consider(part, contents)
        }
        guard let part = choice.part else { return (choice, VersionVector()) }
        return (choice, try await parts.contextBase(of: part))
    }
}
