// SPDX-License-Identifier: Apache-2.0

import Replication
import Sealing
import Testing

@testable import StoreDaemon

/// The steps of a move to a key that follow a sync cycle.
@Suite struct MoveProgressTests {
    private static let now: UInt64 = 1_700_000_000_000_000

    private static func key(_ change: (inout AccountKeyFile) -> Void = { _ in }) throws -> AccountKeyFile {
        let key = try #require(
            AccountKey(secret: Array("sixteen secrets!".utf8), identifier: KeyIdentifier(high: 1, low: 2)))
        var file = AccountKeyFile(
            key: key, marker: SealedMarker(of: key, time: 5, links: []), stage: .moving,
            wasPlain: [KeyIdentifier(high: 0, low: 1)])
        change(&file)
        return file
    }

    private func next(
        moving: Bool = false, _ key: AccountKeyFile?, needsKey: Bool = false, readAll: Bool = true,
        unread: Bool = false, published: Bool = true, later: UInt64 = 0
    ) -> MoveProgress {
        MoveProgress.next(
            movingSince: moving ? Self.now : nil, key: key?.standing,
            MoveProgress.Facts(
                time: Self.now + later, needsKey: needsKey, hasReadAll: readAll, hasUnread: unread,
                isPublished: published))
    }

    @Test func `the key becomes the account's once its former form was read to the end`() {
        #expect(next(moving: true, nil, readAll: false) == .wait)
        #expect(next(moving: true, nil) == .adoptKey)
        #expect(next(moving: true, nil, needsKey: true) == .giveWay)
    }

    @Test func `what can't be read is waited for for an hour, and what has not arrived for ever`() {
        let hour: UInt64 = 3_600_000_000
        #expect(next(moving: true, nil, unread: true, later: hour - 1) == .wait)
        #expect(next(moving: true, nil, unread: true, later: hour) == .adoptKey)
        #expect(next(moving: true, nil, readAll: false, unread: true, later: hour) == .wait)
    }

    @Test func `the phrase may be told once all is in the remote`() throws {
        #expect(next(try Self.key(), published: false) == .wait)
        #expect(next(try Self.key()) == .confirm)
        #expect(next(nil) == .wait)
        #expect(next(try Self.key { $0.wasPlain = [] }) == .wait, "the account was always under this key")
    }

    @Test func `former forms go ten minutes later, if somebody has seen the phrase, and then daily`() throws {
        func used(_ change: (inout AccountKeyFile) -> Void = { _ in }) throws -> AccountKeyFile {
            try Self.key {
                ($0.stage, $0.published, $0.wasShown) = (.using, Self.now, true)
                change(&$0)
            }
        }
        let (minute, day): (UInt64, UInt64) = (60_000_000, 86_400_000_000)
        #expect(next(try used(), later: 9 * minute) == .wait)
        #expect(next(try used(), later: 10 * minute) == .removeFormerForms)
        #expect(next(try used(), published: false, later: 10 * minute) == .wait)
        #expect(next(try used(), readAll: false, unread: true, later: 10 * minute) == .removeFormerForms)
        #expect(next(try used { $0.wasShown = false }, later: 10 * minute) == .wait)
        #expect(next(try used { $0.tidied = Self.now }, later: 20 * minute) == .wait)
        #expect(next(try used { $0.tidied = Self.now }, later: day) == .removeFormerForms)
        #expect(next(try used { $0.published = Self.now + 20 * minute }) == .removeFormerForms, "a clock went back")
    }
}
