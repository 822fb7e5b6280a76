// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@testable import StoreDaemon

/// The pauses between the slices of long work.
@Suite(.serialized) @BusActor struct SlicesTests {
    /// Ids of users that no other test has.
    private let busy: UInt32 = 4_000_000_001
    private let other: UInt32 = 4_000_000_002

    @Test func `one user's many pieces of work delay another user's as much as one piece would`() {
        let piece = Slices(of: .user(other))
        let alone = piece.pause(after: 2000)
        var many = [Slices(of: .user(busy))]
        let besideOne = piece.pause(after: 2000)
        many += (0..<999).map { _ in Slices(of: .user(busy)) }
        #expect(alone >= 6000 && besideOne > alone)
        #expect(piece.pause(after: 2000) == besideOne)
        #expect(many[0].pause(after: 2000) == 1000 * besideOne)
    }

    @Test func `work that has ended delays nobody`() {
        let piece = Slices(of: .user(other))
        let alone = piece.pause(after: 2000)
        for _ in 0..<100 { _ = Slices(of: .user(busy)) }
        #expect(piece.pause(after: 2000) == alone)
    }
}
