// SPDX-License-Identifier: Apache-2.0

package import Replication

extension BackendCheck {
    /// Returns the steps of a check: first whether the address can be used, and the others if it can.
    /// - Parameters:
    ///   - open: makes what `probe` tests, without accessing the remote.
    ///   - warning: returns a warning about the address for the user; `nil` if there is none.
    ///   - probe: tests the remote.
    package static func steps<Opened>(
        opening open: @escaping @Sendable () throws(RemoteError) -> Opened,
        warning: @escaping @Sendable (Opened) -> String? = { _ in nil },
        _ probe: @escaping @Sendable (Opened) async -> [BackendCheck]
    ) async -> [BackendCheck] {
        await Checker().steps(opening: open, warning: warning, probe)
    }
}

/// Runs a check on a thread of its own: the caller's may have to answer others, and a server decides how long it takes
/// to look at what it says.
private actor Checker {
    private let executor = ThreadExecutor()

    nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    func steps<Opened>(
        opening open: @Sendable () throws(RemoteError) -> Opened, warning: @Sendable (Opened) -> String?,
        _ probe: @Sendable (Opened) async -> [BackendCheck]
    ) async -> [BackendCheck] {
        let opened: Opened
        do throws(RemoteError) { opened = try open() } catch {
            return [BackendCheck(step: "address", failed: error)]
        }
        return [BackendCheck(step: "address", isPassed: true, detail: warning(opened) ?? "")] + (await probe(opened))
    }
}
