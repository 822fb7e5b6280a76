// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import Replication

/// Finds out which of the ways in which a store was cut a device goes on with.
final class PartCutter<Storage: BlobStorage> {
    private let segments: SegmentFolder<Storage>
    private let parts: PartReader<Storage>

    init(_ segments: SegmentFolder<Storage>, _ parts: PartReader<Storage>) {
        (self.segments, self.parts) = (segments, parts)
    }

    /// The way of cutting a state that all who hold it prefer, of those that are there.
    /// - Parameters:
    ///   - content: what the state has; `nil`: what this device published of it last.
    ///   - own: what that is, if it is of this state and is there.
    func shared(
        _ digest: Bits128, _ content: StateContent?, of store: String, own: Head.Part?, among candidates: [Head.Part]
    ) async throws(RemoteError) -> Head.Part? {
        var (shared, content) = (own, content)
        for part in candidates where part.digest == digest && part != shared {
            if let shared, !part.isPreferable(to: shared) { continue }
            guard try await segments.areGood(part.segmentNames) else { continue }
            // Who says that a part has this state may be mistaken, and whoever took it over would be, too.
            if content == nil, let own { content = try await parts.content(of: own, store: store) }
            guard let content, try await parts.content(of: part, store: store) == content else { continue }
            shared = part
        }
        return shared
    }

    /// What a state is cut over, and the version vector in its segment.
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
