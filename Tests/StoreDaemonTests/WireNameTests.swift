// SPDX-License-Identifier: Apache-2.0

import Replication
import StoreBus
import StoreEngine
import SyncEngine
import Testing

@testable import StoreDaemon

/// Names and numbers that clients rely on, so they never change.
@Suite struct WireNameTests {
    @Test func `the words and numbers on the bus are those of the interface`() {
        let states: [AccountSync.State] = [
            .initialSync, .idle, .syncing, .offline, .paused, .error, .authFailed, .signedOut,
        ]
        #expect(
            states.map(\.status.rawValue) == [
                "initial-sync", "idle", "syncing", "offline", "paused", "error", "auth-failed", "signed-out",
            ])
        let changes: [StoreNotice.Reason] = [
            .serverChange, .initialSyncChange, .quotaViolationChange, .accountChange, .localChange, .managedChange,
        ]
        #expect(changes.map(\.wireNumber) == [0, 1, 2, 3, 16, 32])
        let failures: [RemoteError.Reason] = [
            .folderMissing, .firstPartsMissing, .partsMissing, .accountReplaced, .markerDamaged, .listsNothing,
            .keyReplaced, .authorityUnknown,
        ]
        #expect(
            failures.map(\.wireName) == [
                "folder-missing", "first-parts-missing", "parts-missing", "account-replaced", "marker-damaged",
                "lists-nothing", "key-replaced", "authority-unknown",
            ])
        let ends: [FormerValue.Reason] = [.replaced, .removed, .account, .merge, .initialSync]
        #expect(ends.map(\.wireName) == ["replaced", "removed", "account", "merge", "initial-sync"])
        let limits: [QuotaViolation.Limit] = [.keys, .totalBytes, .valueBytes]
        #expect(limits.map(\.wireName) == ["keys", "total-bytes", "value-bytes"])
    }
}
