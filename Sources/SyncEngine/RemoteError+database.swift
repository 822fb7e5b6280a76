// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import StoreEngine

extension RemoteError {
    /// What kept a pass from going on.
    init(_ error: any Error) {
        self =
            switch error {
            case let error as RemoteError: error
            case EngineError.diskFull:
                RemoteError(.device, "there is no space left on this device for the user's data; it goes on with space")
            case EngineError.storage(let reason):
                RemoteError(.device, "this device's database can't be read or written: \(reason)")
            default: RemoteError(.damaged, "this device's database: \(error)")
            }
    }
}
