// SPDX-License-Identifier: Apache-2.0

package import Replication

extension BackendCheck {
    /// Returns the steps of a check: first whether the address can be used, and the others if it can.
    /// - Parameters:
    ///   - open: makes what `probe` tests, without accessing the remote.
    ///   - warning: returns a warning about the address for the user; `nil` if there is none.
    ///   - probe: tests the remote.
    package static func steps<Place>(
        opening open: () throws(RemoteError) -> Place, warning: (Place) -> String? = { _ in nil },
        _ probe: (Place) async -> [BackendCheck]
    ) async -> [BackendCheck] {
        let place: Place
        do throws(RemoteError) { place = try open() } catch {
            return [BackendCheck(step: "address", isPassed: false, detail: error.message)]
        }
        return [BackendCheck(step: "address", isPassed: true, detail: warning(place) ?? "")] + (await probe(place))
    }
}
