// SPDX-License-Identifier: Apache-2.0

// The only place that maps the engines' enumerations to words and numbers on the bus. BusError+mapping maps errors.

internal import Replication
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension AccountSync.State {
    /// The state, as the account's property `State` has it.
    var status: AccountStatus {
        switch self {
        case .initialSync: .initialSync
        case .idle: .idle
        case .syncing: .syncing
        case .offline: .offline
        case .paused: .paused
        case .error: .error
        case .authFailed: .authFailed
        case .signedOut: .signedOut
        }
    }
}

extension StoreNotice.Reason {
    /// The reason, as a signal has it.
    var wireNumber: UInt32 {
        switch self {
        case .serverChange: ChangeReason.server
        case .initialSyncChange: ChangeReason.initialSync
        case .quotaViolationChange: ChangeReason.quotaViolation
        case .accountChange: ChangeReason.account
        case .localChange: ChangeReason.local
        case .managedChange: ChangeReason.managed
        }
    }
}

extension RemoteError.Reason {
    /// The failure, as the account's property `LastErrorReason` and the steps of `CheckBackend` have it.
    var wireName: String {
        switch self {
        case .folderMissing: "folder-missing"
        case .firstPartsMissing: "first-parts-missing"
        case .partsMissing: "parts-missing"
        case .accountReplaced: "account-replaced"
        case .markerDamaged: "marker-damaged"
        case .listsNothing: "lists-nothing"
        case .keyReplaced: "key-replaced"
        case .authorityUnknown: "authority-unknown"
        }
    }
}

extension FormerValue.Reason {
    /// The reason why a value was replaced, as a key's history has it.
    var wireName: String {
        switch self {
        case .replaced: "replaced"
        case .removed: "removed"
        case .account: "account"
        case .merge: "merge"
        case .initialSync: "initial-sync"
        }
    }
}

extension QuotaViolation.Limit {
    /// The name of the limit.
    var wireName: String {
        switch self {
        case .keys: "keys"
        case .totalBytes: "total-bytes"
        case .valueBytes: "value-bytes"
        }
    }
}
