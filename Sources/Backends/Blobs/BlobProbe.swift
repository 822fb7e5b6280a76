// SPDX-License-Identifier: Apache-2.0

package import Replication

/// Tests a storage with the operations of a backend, on a blob with a random name, which it removes again.
package struct BlobProbe<Storage: BlobStorage> {
    let storage: Storage
    let environment: Environment
    /// The beginning of the blob's name.
    private let prefix: String
    /// The steps that were taken. The first that fails is the last.
    package private(set) var checks: [BackendCheck] = []

    package init(of storage: Storage, environment: Environment, name prefix: String = ".check-") {
        self.storage = storage
        self.prefix = prefix
        self.environment = environment
    }

    package mutating func run() async {
        let (storage, name) = (storage, prefix + environment.random().hexDigits)
        let (first, second) = (Array("first of \(name)".utf8), Array("other of \(name)".utf8))
        do throws(RemoteError) {
            try await step("open") { () async throws(RemoteError) in
                try await storage.check(creatingFolder: false).joined(separator: " ")
            }
            try await step("write") { () async throws(RemoteError) in
                try await storage.put(name, first)
                return ""
            }
            try await step("read") { () async throws(RemoteError) in try await Self.expect(first, name, storage) }
            try await step("overwrite") { () async throws(RemoteError) in
                try await storage.put(name, second)
                return try await Self.expect(second, name, storage)
            }
            try await step("list") { () async throws(RemoteError) in try await Self.expect(true, name, storage) }
            try await step("delete") { () async throws(RemoteError) in
                try await storage.delete(name)
                return try await Self.expect(false, name, storage)
            }
            try await findAccount()
        } catch {
            // The step has recorded the error. If only the account is missing, the blob is gone; otherwise remove it.
            if error.code == .noAccount { return }
            do { try await storage.delete(name) } catch {}
        }
    }

    /// Runs a step. A missing account ends the check but is no failure: the user may be about to create it.
    private mutating func step(
        _ step: String,
        _ body: () async throws(RemoteError) -> String
    ) async throws(RemoteError) {
        do {
            checks.append(BackendCheck(step: step, isPassed: true, detail: try await body()))
        } catch {
            let isNoFailure = error.code == .noAccount
            checks.append(
                isNoFailure
                    ? BackendCheck(step: step, isPassed: true, detail: error.message)
                    : BackendCheck(step: step, failed: error))
            throw error
        }
    }

    private mutating func findAccount() async throws(RemoteError) {
        let backend = BlobBackend(storage: storage, environment: environment)
        try await step("account") { () async throws(RemoteError) in
            do throws(RemoteError) {
                return "The account \(try await backend.open(creatingAccount: false).identifier) is here."
            } catch {
                if error.code == .keyNeeded { return await backend.encryptedAccount() }
                throw error
            }
        }
    }

    private static func expect(_ bytes: [UInt8], _ name: String, _ storage: Storage) async throws(RemoteError) -> String
    {
        if case .content(bytes, _) = try await storage.get(name, limit: 4096, unless: nil) { return "" }
        throw RemoteError(.damaged, "A test file was read back with other contents than were written.")
    }

    private static func expect(
        _ isListed: Bool,
        _ name: String,
        _ storage: Storage
    ) async throws(RemoteError) -> String {
        if try await storage.list("").contains(where: { $0.name == name }) == isListed { return "" }
        throw RemoteError(.damaged, isListed ? "What was written is not listed." : "What was deleted is still listed.")
    }
}
