// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Tells the service manager something, as `READY=1`; nothing happens where there is none.
///
/// The corresponding C function is ``sd_notify``.
///
/// - Parameter state: lines of assignments, as in sd_notify(3).
public func notifyServiceManager(_ state: String) {
    sd_notify(0, state)
}
