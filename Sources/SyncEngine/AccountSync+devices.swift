// SPDX-License-Identifier: Apache-2.0

internal import Replication
package import StoreEngine

extension AccountSync {
    /// Returns the account's devices, including this one, in no order.
    package func listDevices() throws(EngineError) -> [AccountDevice] {
        let own = AccountDevice(identifier: devices.own.identifier, name: devices.own.name, lastSeen: lastPush)
        return try (isSignedIn ? devices.others() : []) + [own]
    }

    /// Renames a device of the account, for all devices.
    /// - Returns: whether there is such a device.
    package func rename(device identifier: String, to name: String) throws(EngineError) -> Bool {
        // What may fail comes first: a name that can't be stored is not taken.
        let isListed = isSignedIn ? try devices.rename(identifier, to: name) : false
        let isOwn = identifier == devices.own.identifier
        if isOwn {
            devices.takeName(name)
            devices.onOwnChange?()
        }
        guard isListed else { return isOwn }
        noteLocalChange()
        return true
    }

    /// Removes another device from the list, until it uploads again.
    /// - Returns: whether there is such a device.
    package func forget(device identifier: String) throws(EngineError) -> Bool {
        guard isSignedIn, try devices.forget(identifier) else { return false }
        noteLocalChange()
        return true
    }
}
