// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreEngine

extension RemoteError {
    /// Translates the error that ended a sync cycle early.
    init(_ error: any Error) {
        self =
            switch error {
            case let error as RemoteError: error
            case EngineError.diskFull:
                RemoteError(.device, "There is no space left on this device for the user's data. Free some.")
            case EngineError.noRoom(let missing):
                RemoteError(
                    .device,
                    "All of the user's values have to be written again, and this device's disk has no room for that: "
                        + "\((missing >> 20) + 1) MiB are missing. Free some space.")
            case EngineError.storage(let reason):
                RemoteError(.device, "This device's database can't be read or written: \(reason).")
            default: RemoteError(.damaged, "This device's database can't be used: \(error).")
            }
    }
}
