// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import UbiquitousStore

extension AccountObject {
    /// Waits for the remote; where that can't be because of a pause, says how it ends.
    @BusActor
    func unlessPaused<Result>(_ body: @BusActor () async throws -> Result) async throws -> Result {
        do {
            return try await body()
        } catch let error as UbiquitousStoreError where error.code == .backendUnavailable {
            guard let state = try? await properties(), state.isPausedByPerson else { throw error }
            throw Failure(
                .unreachable, "Sync is paused on this device.",
                advice: "\"ubiquitousctl account resume\" ends the pause.")
        }
    }
}

extension AccountDescription {
    /// A remote that was emptied pauses sync as well, which isn't what a person asked for.
    var isPausedByPerson: Bool { state == "paused" && lastError == nil }
}
