// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Notifies the service manager, for example with `READY=1`. Does nothing if there is none.
///
/// The corresponding C function is ``sd_notify``.
///
/// - Parameter state: lines of assignments, as in sd_notify(3).
package func notifyServiceManager(_ state: String) {
    sd_notify(0, state)
}
