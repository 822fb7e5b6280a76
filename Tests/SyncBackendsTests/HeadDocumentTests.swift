// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import Testing

@testable import StoreEngine

/// What docs/remote-format.md says of a head under the device's own name, and of tombstones that are forgotten.
@Suite struct HeadDocumentTests {
    private static let origin = Origin(bits: 7)

    @Test func `a head under the device's name is whose the document says`() throws {
        for row in try FormatDocument().table("### Vectors of heads under the own name") {
            let (last, count) = (try parseHead(row[0]), try #require(UInt64(row[1])))
            let (first, later) = (try parseHead(row[2]), try parseHead(row[3]))
            var heads = OwnHeads()
            _ = pull(first, &heads, last, count)
            let found = pull(later, &heads, last, count)
            #expect(found == row[4], "\(row)")
        }
    }

    private func pull(
        _ found: HeadIdentity?, _ heads: inout OwnHeads, _ last: HeadIdentity?, _ count: UInt64
    ) -> String {
        let publication = heads.find(as: Self.origin, published: count, last: last) { origin in
            origin == Self.origin ? found.map { ($0, true) } : nil
        }
        return switch publication.publication(hasSegments: true) {
        case .asPublished: "as published"
        case .missing: "written again"
        case .foreign: "a stranger's"
        case .outdated: "outdated"
        }
    }

    /// `9a`: a head's sequence, and a letter for its content; or `none`.
    private func parseHead(_ text: String) throws -> HeadIdentity? {
        if text == "none" { return nil }
        let (sequence, content) = (try #require(UInt64(text.dropLast())), try #require(text.utf8.last))
        return HeadIdentity(
            origin: Self.origin, digest: Bits128(high: UInt64(content), low: sequence), sequence: sequence)
    }

    @Test func `a tombstone is forgotten when the document says so`() throws {
        for row in try FormatDocument().table("### Vectors of forgotten tombstones") {
            let days = try row.prefix(4).map { try #require(UInt64($0)) }
            let (now, seen, since, wall) = (days[0], days[1], days[2], days[3])
            let time = now * Retention.day
            var trimming = Trimming(
                isShared: true, published: row[4] == "yes" ? 1 : 0, horizon: time - Retention.microseconds, now: time,
                doubt: (now - seen) * Retention.day)
            trimming.add(
                ChangeReader.Outline(
                    sequence: 1, key: Key(unchecked: "k"), cause: .written, time: since * Retention.day,
                    wall: wall * Retention.day / 1000, length: nil))
            #expect(trimming.goneKeys.isEmpty == (row[5] == "kept"), "\(row)")
        }
    }
}
