// SPDX-License-Identifier: Apache-2.0

internal import StoreBus
package import UbiquitousStore

/// The service's state at one moment.
package struct PanelState: Sendable {
    /// The service's property `Features`.
    package var features: [String]
    package var account: AccountDescription
    package var devices: [DeviceDescription]
    package var apps: [AppUsage]
    /// Where accounts may be in folders.
    package var folderRoots = FolderRoots(nil)
    /// When the state was read, in microseconds since 1970-01-01T00:00:00Z.
    package var time: UInt64

    package var accountPage: AccountPage {
        let page = AccountPage(account, features: features, now: time)
        let move = devices.first(where: \.isThisOne).flatMap { KeyMove(called: $0.moves) }
        // What stops sync also stops the move, and is shown first.
        return move.flatMap { page.step == .syncNow ? page.during($0) : nil } ?? page
    }
    package var devicesPage: DevicesPage {
        DevicesPage(devices, isSignedIn: account.isSignedIn, now: time)
    }
    /// The devices' names, by identifier.
    package var deviceNames: [String: String] {
        Dictionary(devices.map { ($0.identifier, $0.name) }) { first, _ in first }
    }
}
