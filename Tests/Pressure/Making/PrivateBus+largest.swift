// SPDX-License-Identifier: Apache-2.0

public import UbiquitousStoreTesting

extension PrivateBus.Program {
    /// The bytes of an array in the largest message that the bus passes on to the service, a multiple of eight.
    ///
    /// dbus-daemon takes messages of 32 MiB. dbus-broker lets one user have a third of what the service's user may have
    /// waiting, of which the service leaves 32 MiB: 10.6 MiB are passed on, and 10.7 MiB are not. While a call of
    /// another user waits as well, it is a quarter.
    public var largestArray: Int {
        switch self {
        case .daemon: 31 << 20
        case .broker: 10 << 20
        }
    }
}
