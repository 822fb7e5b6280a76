// SPDX-License-Identifier: Apache-2.0

// The cases that every backend must pass. They don't depend on a test framework:
//
//     @Test(arguments: BackendConformance.cases)
//     func conforms(to conformance: BackendConformance) async throws {
//         try await conformance.run(on: EmptyRemote { MyBackend(server) })
//     }
//
// docs/backends.md defines C1 to C5.

internal import Replication

/// A case that every backend must pass.
public struct BackendConformance: Sendable, CustomStringConvertible {
    /// What the case requires, as a sentence.
    public let description: String
    private let body: @Sendable (EmptyRemote) async throws -> Void

    /// Runs the case on an empty remote that nothing else uses.
    /// - Throws: a ``Failure`` if the backend does not pass it, or what the backend throws.
    public func run(on remote: EmptyRemote) async throws { try await body(remote) }

    /// A failed case.
    public struct Failure: Error, CustomStringConvertible {
        /// What should have been true.
        public let description: String
    }

    init(_ description: String, _ body: @escaping @Sendable (EmptyRemote) async throws -> Void) {
        (self.description, self.body) = (description, body)
    }

    static func expect(_ condition: Bool, _ sentence: String) throws {
        if !condition { throw Failure(description: sentence) }
    }

    /// Expects an error with this code.
    static func expect(_ code: RemoteError.Code, _ body: () async throws -> Void) async throws {
        do { try await body() } catch let error as RemoteError where error.code == code { return }
        throw Failure(description: "it fails with the code \(code)")
    }

    /// All cases.
    public static let cases: [BackendConformance] =
        accounts + exchanges + failures

    /// Repeats a call that the server refuses for the moment, as the service does: some lock files that others write.
    @discardableResult
    static func again<Result>(_ body: () async throws -> Result) async throws -> Result {
        for pause in 0..<6 {
            do { return try await body() } catch let error as RemoteError where error.code == .unavailable {
                try await Task.sleep(for: .milliseconds(50 << pause))
            }
        }
        return try await body()
    }

    static let store = "org.example.Notes"

    /// Makes devices that have signed in. The first has created the account.
    /// - Throws: what the backend throws.
    public static func devices(_ count: Int, _ remote: EmptyRemote) async throws -> [BackendDevice] {
        var devices: [BackendDevice] = []
        for number in 0..<count {
            let device = BackendDevice("\(number)", seed: UInt64(number + 1), backend: try remote.makeBackend())
            try await device.signIn(creating: number == 0)
            try await device.sync()
            devices.append(device)
        }
        return devices
    }

    /// Syncs devices until all hold the same, which takes at most three rounds.
    /// - Throws: a ``Failure`` if they still differ then, or what the backend throws.
    public static func settle(_ devices: [BackendDevice]) async throws {
        for _ in 0..<3 {
            for device in devices { try await device.sync() }
        }
        for device in devices { try await device.pull() }
        for device in devices {
            try expect(device.stores == devices[0].stores, "\(device.name) holds what \(devices[0].name) holds")
        }
    }

    /// Makes two devices that have signed in.
    static func pair(_ remote: EmptyRemote) async throws -> (BackendDevice, BackendDevice) {
        let devices = try await devices(2, remote)
        return (devices[0], devices[1])
    }
}
