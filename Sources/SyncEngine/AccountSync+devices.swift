// SPDX-License-Identifier: Apache-2.0

public import StoreEngine

extension AccountSync {
    /// The identifier of the device that wrote under an origin, where it is known.
    public func deviceIdentifier(of origin: Origin) -> String? {
        if origin == database.origin { return device.identifier }
        return names[origin]?.identifier
    }

    func soleDevice(_ origins: Set<Origin>) -> String? {
        let devices = Set(origins.map(deviceIdentifier))
        return devices.count == 1 ? devices.first ?? nil : nil
    }
}
