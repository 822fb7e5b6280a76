// SPDX-License-Identifier: Apache-2.0

package import Replication
package import StoreEngine

/// What an account asks the program that it is part of, and tells it.
package struct AccountHost {
    /// Returns the names of encrypted accounts whose keys are on this device.
    package var keyNames: () -> Set<String> = { [] }
    /// Returns the keys of a store that never leave this device.
    package var localKeys: (_ store: String) -> LocalKeys = { _ in .none }
    /// Called before a store takes in what other devices have written. If it throws, the cycle goes on without the store
    /// and reports that error, and every pull offers the store again.
    package var makeRoom: (Store, JoinPlan) throws(RemoteError) -> Void = { _, _ in }

    /// Called when the state, the last error, the account, or whether its values have arrived has changed.
    package var onStateChange: (() -> Void)?
    /// Called when ``AccountSync/nextCycle`` may have changed.
    package var onScheduleChange: (() -> Void)?
    /// Called between a cycle's steps with the microseconds that they have used the processor. The cycle goes on when it
    /// returns.
    package var onWork: ((UInt64) async -> Void)?
    /// Called when the remote, or a change of account, has changed what a store shows.
    package var onNotice: ((StoreNotice) -> Void)?
    /// Called when the account continues under another identifier.
    package var onRename: (() -> Void)?
    /// Called with a backend that the account has left, to close it. Closing may hang, so nothing should wait for it.
    package var onLeave: ((any RemoteBackend) -> Void)?
    /// Called after a cycle that found the database damaged, with the reason.
    package var onDamage: ((String) -> Void)?
}
