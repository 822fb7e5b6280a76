// SPDX-License-Identifier: Apache-2.0

// The one place where what the engines know becomes a word or a number on the bus. What went wrong becomes a name in
// BusError+mapping.

internal import StoreEngine
internal import SyncEngine

extension AccountSync.State {
    /// The account's property `State`.
    var wireName: String {
        switch self {
        case .initialSync: "initial-sync"
        case .idle: "idle"
        case .syncing: "syncing"
        case .offline: "offline"
        case .paused: "paused"
        case .error: "error"
        case .authFailed: "auth-failed"
        case .signedOut: "signed-out"
        }
    }
}

extension StoreNotice.Reason {
    /// A signal's reason.
    var wireNumber: UInt32 {
        switch self {
        case .serverChange: 0
        case .initialSyncChange: 1
        case .quotaViolationChange: 2
        case .accountChange: 3
        case .localChange: 16
        case .managedChange: 32
        }
    }
}

extension FormerValue.Reason {
    /// Why a value went, in a key's history.
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
    /// Which limit a write would break.
    var wireName: String {
        switch self {
        case .keys: "keys"
        case .totalBytes: "total-bytes"
        case .valueBytes: "value-bytes"
        }
    }
}
