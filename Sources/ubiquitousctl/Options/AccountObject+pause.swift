// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import UbiquitousStore

extension AccountObject {
    /// Runs `body`, which waits for the remote. If it fails because of a pause, the error says how to end the pause.
    @BusActor
    func unlessPaused<Result>(_ body: @BusActor () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as UbiquitousStoreError where error.code == .backendUnavailable {
            guard let state = try? await properties(), state.isPausedByUser else { throw error }
            throw Failure(
                .unreachable, "Sync is paused on this device.",
                advice: "\"ubiquitousctl account resume\" ends the pause.")
        }
    }
}

extension AccountDescription {
    /// Whether the user has paused sync. An emptied remote also pauses it, but leaves an error.
    var isPausedByUser: Bool { state == "paused" && lastError == nil }
}
