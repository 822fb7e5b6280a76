// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import Sealing

/// Tests the encryption of the account in a remote.
struct EncryptionCheck {
    private let backend: Result<LoggingBackend, RemoteError>
    private let createsUnencrypted: Bool

    /// - Parameters:
    ///   - createsUnencrypted: whether the user wants an unencrypted account if there is none.
    ///   - make: makes a backend with what is known of the account.
    init(creatingUnencrypted createsUnencrypted: Bool, _ make: () throws(RemoteError) -> LoggingBackend) {
        self.createsUnencrypted = createsUnencrypted
        do throws(RemoteError) { backend = .success(try make()) } catch { backend = .failure(error) }
    }

    /// Runs the steps and returns their results. Cancelling closes the backend.
    func steps() async -> [BackendCheck] {
        switch backend {
        case .failure(let error): return [BackendCheck(step: "key", failed: error)]
        case .success(let backend):
            let steps = await backend.untilCancelled {
                if let key = backend.keyHolding { await key.checkKey() } else { await requirement(backend) }
            }
            await backend.close()
            return steps
        }
    }

    /// Reports an unencrypted account, there or wanted, if the administrator requires encryption: the backend refuses it.
    private func requirement(_ backend: LoggingBackend) async -> [BackendCheck] {
        do throws(RemoteError) { _ = try await backend.open(creatingAccount: createsUnencrypted) } catch {
            if error.code == .denied {
                return [BackendCheck(step: "encryption", failed: error)]
            }
        }
        return []
    }
}
