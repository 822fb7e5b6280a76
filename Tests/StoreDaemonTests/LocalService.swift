// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import Blobs
import Foundation
import Logging
import PropertyList
import Replication
import SDBus
import StoreBus
import Synchronization

@testable import StoreDaemon

/// A service at the other end of a socket pair, to test handlers without a process and without a bus.
@BusActor
final class LocalService {
    let daemon: Daemon
    let client: BusConnection
    let remote: MemoryStorage
    /// The URLs for which backends were requested.
    let addresses = Addresses()
    private let directory = FileManager.default.temporaryDirectory.appending(path: "local-service-\(UUID())").path

    final class Addresses: Sendable {
        private let state = Mutex<[String]>([])
        var all: [String] { state.withLock(\.self) }
        func note(_ url: String) { state.withLock { $0.append(url) } }
    }

    /// - Parameters:
    ///   - credentials: the caller's credentials.
    ///   - remote: the remote of all accounts.
    ///   - change: changes the service's configuration.
    init(
        for credentials: Credentials = Credentials(uid: 4711, pid: getpid()), remote: MemoryStorage = MemoryStorage(),
        _ change: (inout Configuration) -> Void = { _ in }
    ) throws {
        self.remote = remote
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        var logger = Logger(label: "local service") { _ in SwiftLogNoOpLogHandler() }
        logger.logLevel = .critical
        var configuration = Configuration(
            bus: .session, mode: .user, stateDirectory: directory, runtimeDirectory: nil, manifestDirectories: [],
            deviceName: "here", allowsUndeclared: true, settings: Settings(), version: "0", backendSchemes: ["memory"],
            makeBackend: { [remote, addresses] request throws(RemoteError) in
                addresses.note(request.url)
                guard request.scheme == "memory" else { throw RemoteError(.unsupported, "There is no such backend.") }
                return BlobBackend(storage: remote, environment: .system)
            },
            checkBackend: { request throws(RemoteError) in
                [BackendCheck(step: "address", isPassed: request.scheme == "memory", detail: request.url)]
            },
            logger: logger)
        change(&configuration)
        let server: BusConnection
        (server, client) = try BusConnection.pair()
        server.peers.directCredentials = credentials
        daemon = try Daemon(configuration, on: server, renewed: { [configuration] in configuration })
        try daemon.register()
    }

    /// Stops the service, and removes its files.
    func close() throws {
        daemon.users.close()
        client.close()
        daemon.connection.close()
        try FileManager.default.removeItem(atPath: directory)
    }

    static let store = "org.example.App"

    func storePath(uid: UInt32? = nil) throws -> String { try BusNames.storePath(uid: uid, identifier: Self.store) }

    /// Calls a method of a store.
    func call<Answer: Sendable>(
        _ member: String, uid: UInt32? = nil, _ build: (Message) throws -> Void = { _ in },
        _ decode: @escaping @BusActor (Message) throws -> Answer
    ) async throws -> Answer {
        try await client.call(
            nil, try storePath(uid: uid), BusNames.storeInterface, member, build: build, decode: decode)
    }

    /// Writes a value.
    /// - Returns: the generation.
    func set(_ key: String, _ value: Value) async throws -> UInt64 {
        try await call("SetValue") {
            try $0.append(key)
            try $0.append(variant: value)
        } _: {
            try $0.readUInt64()
        }
    }

    /// Returns a property of an object.
    func property(_ name: String, of interface: String, at path: String) async throws -> Value {
        try await client.call(nil, path, "org.freedesktop.DBus.Properties", "Get") {
            try $0.append(interface)
            try $0.append(name)
        } decode: {
            try $0.readValue()
        }
    }

    func account(_ name: String) async throws -> Value {
        try await property(name, of: BusNames.accountInterface, at: BusNames.accountPath(uid: nil))
    }

    /// Calls a method of the account.
    func invoke(_ member: String, _ build: (Message) throws -> Void = { _ in }) async throws {
        try await client.invoke(
            nil, BusNames.accountPath(uid: nil), BusNames.accountInterface, member, build)
    }

    func signIn(_ url: String) async throws {
        try await invoke("SignIn") {
            try $0.append(url)
            try $0.appendDictionary {}
        }
    }
}
