// SPDX-License-Identifier: Apache-2.0

internal import Foundation

extension Device {
    /// Restarts the service without the key of its encrypted account, as if the key's file had been lost.
    package func loseKey() async throws {
        kill()
        for file in keyFiles { try FileManager.default.removeItem(atPath: file) }
        try await start()
    }

    /// The files with the keys of the users' encrypted accounts.
    package var keyFiles: [String] {
        let files = FileManager.default.enumerator(atPath: stateDirectory)?.compactMap { $0 as? String } ?? []
        return files.filter { $0.hasSuffix("/account-key.plist") }.map { stateDirectory + "/" + $0 }
    }
}
