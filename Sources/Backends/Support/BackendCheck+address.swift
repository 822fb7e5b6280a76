// SPDX-License-Identifier: Apache-2.0

package import Replication

extension BackendCheck {
    /// The first step of every check, whether the address can be used, and those that follow where it can.
    /// - Parameters:
    ///   - open: makes what is at the address, without asking for it.
    ///   - warning: what the address's owner should know about it.
    ///   - probe: tries what is there.
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
