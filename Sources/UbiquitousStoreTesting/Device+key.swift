// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension Device {
    /// Restarts the service without the key of its encrypted account, as if the key's file had been lost.
    package func loseKey() async throws {
        kill()
        let files = FileManager.default.enumerator(atPath: stateDirectory)?.compactMap { $0 as? String } ?? []
        for file in files where file.hasSuffix("/account-key.plist") {
            try FileManager.default.removeItem(atPath: stateDirectory + "/" + file)
        }
        try await start()
    }
}
