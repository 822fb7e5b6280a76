// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
package import UbiquitousStore

/// What the devices page shows.
package struct DevicesPage: Equatable, Sendable {
    /// A device.
    package struct Row: Equatable, Identifiable, Sendable {
        package var id: String
        /// The name on one line, as text.
        package var title: String
        package var subtitle: String
        /// The whole name, for editing.
        package var name: String
        package var isThisOne: Bool
    }

    /// This device first, then the others, the last seen first.
    package var rows: [Row]
    /// Whether names can be changed and devices forgotten.
    package var isSignedIn: Bool

    /// - Parameter now: microseconds since 1970-01-01T00:00:00Z.
    package init(_ devices: [DeviceDescription], isSignedIn: Bool, now: UInt64) {
        self.isSignedIn = isSignedIn
        rows = devices.sorted { ($0.isThisOne ? 0 : 1, $1.lastSeen) < ($1.isThisOne ? 0 : 1, $0.lastSeen) }.map {
            Row(
                id: $0.identifier, title: $0.name.isEmpty ? tr("Unnamed Device") : $0.name.shown,
                subtitle: $0.isThisOne ? tr("This device") : Age.lastSeen($0.lastSeen, at: now),
                name: $0.name, isThisOne: $0.isThisOne)
        }
    }

    /// Returns what is wrong with a new name; `nil` if nothing is.
    package static func flaw(ofName name: String) -> String? {
        switch name.trimmed.utf8.count {
        case 0: tr("A device needs a name.")
        case 1...255: nil
        default: tr("This name is too long.")
        }
    }
}
