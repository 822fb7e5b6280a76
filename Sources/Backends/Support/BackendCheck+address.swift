// SPDX-License-Identifier: Apache-2.0

package import Replication

extension BackendCheck {
    /// Returns the steps of a check: first whether the address can be used, and the others if it can.
    /// - Parameters:
    ///   - open: makes what `probe` tests, without accessing the remote.
    ///   - warning: returns a warning about the address for the user; `nil` if there is none.
    ///   - probe: tests the remote.
    package static func steps<Place>(
        opening open: @escaping @Sendable () throws(RemoteError) -> Place,
        warning: @escaping @Sendable (Place) -> String? = { _ in nil },
        _ probe: @escaping @Sendable (Place) async -> [BackendCheck]
    ) async -> [BackendCheck] {
        await Checker().steps(opening: open, warning: warning, probe)
    }
}

/// Runs a check on a thread of its own: the caller's may have to answer others, and a server decides how long it takes
/// to look at what it says.
private actor Checker {
    private let executor = ThreadExecutor()

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func steps<Place>(
        opening open: @Sendable () throws(RemoteError) -> Place, warning: @Sendable (Place) -> String?,
        _ probe: @Sendable (Place) async -> [BackendCheck]
    ) async -> [BackendCheck] {
        let place: Place
        do throws(RemoteError) { place = try open() } catch {
            return [BackendCheck(step: "address", failed: error)]
        }
        return [BackendCheck(step: "address", isPassed: true, detail: warning(place) ?? "")] + (await probe(place))
    }
}
