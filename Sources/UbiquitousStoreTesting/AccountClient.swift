// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus
internal import StoreBus

/// An account as a program on the bus has it.
@BusActor
public final class AccountClient {
    /// The program's connection.
    public let client: BusClient
    /// The account's object.
    public let path: String
    /// The states that were told of since ``subscribe()``, the newest last.
    public private(set) var received: [AccountSignal] = []

    private var match: Slot?

    /// The account at a path.
    public init(_ client: BusClient, path: String) {
        self.client = client
        self.path = path
    }

    /// `SignIn`.
    /// - Returns: the account's identifier.
    @discardableResult
    public func signIn(_ url: String, _ options: KeyValuePairs<String, Value> = [:]) async throws -> String {
        try await call("SignIn") { message in
            try message.append(url)
            try message.appendDictionary { for (name, value) in options { try message.append(entry: name, value) } }
        } decode: {
            try $0.readString()
        }
    }

    /// `SignIn`, and waits for the end of the first download.
    @discardableResult
    public func join(_ url: String, _ options: KeyValuePairs<String, Value> = [:]) async throws -> String {
        let identifier = try await signIn(url, options)
        try await eventually("the first download is complete") { try await isDownloaded() }
        return identifier
    }

    /// `SignOut`.
    public func signOut(keepingValues: Bool? = nil) async throws {
        try await call("SignOut") { message in
            try message.appendDictionary {
                if let keepingValues { try message.append(entry: "keep-values", .boolean(keepingValues)) }
            }
        } decode: { _ in
        }
    }

    /// `SyncNow`.
    public func syncNow() async throws {
        try await call("SyncNow") {
            try $0.append(0 as UInt64)
        } decode: { _ in
        }
    }

    /// `Resolve`.
    public func resolve(_ side: String) async throws {
        try await call("Resolve") {
            try $0.append(side)
        } decode: { _ in
        }
    }

    /// `SetPaused`.
    public func setPaused(_ isPaused: Bool) async throws {
        try await call("SetPaused") {
            try $0.append(isPaused)
        } decode: { _ in
        }
    }

    /// `SetStoreSynchronized`.
    public func setSynchronized(_ identifier: String, _ isOn: Bool) async throws {
        try await call("SetStoreSynchronized") {
            try $0.append(identifier)
            try $0.append(isOn)
        } decode: { _ in
        }
    }

    /// `ListDevices`.
    public func devices() async throws -> [[String: Value]] {
        try await call("ListDevices") { _ in
        } decode: { answer in
            var devices: [[String: Value]] = []
            _ = try answer.enterContainer("a", "a{sv}")
            while try !answer.isAtEnd(whole: false) {
                devices.append(Dictionary(uniqueKeysWithValues: try answer.readValues().map { ($0.key, $0.value) }))
            }
            return devices
        }
    }

    /// `RenameDevice`.
    public func rename(device identifier: String, to name: String) async throws {
        try await call("RenameDevice") {
            try $0.append(identifier)
            try $0.append(name)
        } decode: { _ in
        }
    }

    /// `ForgetDevice`.
    public func forget(device identifier: String) async throws {
        try await call("ForgetDevice") {
            try $0.append(identifier)
        } decode: { _ in
        }
    }

    /// A property of the account that is a string.
    public func text(_ name: String) async throws -> String {
        if case .string(let text) = try await property(name) { text.string } else { "" }
    }

    /// `Subscribe`; from now on ``received`` has what is told.
    public func subscribe() async throws {
        let rule = "type='signal',interface='\(BusNames.accountInterface)',path='\(path)'"
        match = try await client.connection.addMatch(rule) { [weak self] message in
            guard let state = try? message.readString(), let info = try? message.readValues() else { return }
            self?.received.append(
                AccountSignal(state: state, info: Dictionary(uniqueKeysWithValues: info.map { ($0.key, $0.value) }))
            )
        }
        try await call("Subscribe") {
            try $0.append(0 as UInt64)
        } decode: { _ in
        }
    }

    /// A property of the account.
    public func property(_ name: String) async throws -> Value {
        try await client.property(path, BusNames.accountInterface, name)
    }

    /// The property State.
    public func state() async throws -> String {
        if case .string(let state) = try await property("State") { state.string } else { "" }
    }

    /// The property LastErrorName, without what all of ours begin with.
    public func lastError() async throws -> String {
        guard case .string(let name) = try await property("LastErrorName") else { return "" }
        return name.string.split(separator: ".").last.map(String.init) ?? ""
    }

    /// The property InitialSyncDone.
    public func isDownloaded() async throws -> Bool {
        try await property("InitialSyncDone") == .boolean(true)
    }

    /// Calls a method of the account.
    public func call<Result: Sendable>(
        _ member: String,
        _ build: @BusActor (Message) throws -> Void,
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await client.call(path, BusNames.accountInterface, member, build, decode: decode)
    }
}

/// `AccountChanged`.
public struct AccountSignal: Equatable, Sendable {
    /// The new state.
    public let state: String
    /// What is known besides.
    public let info: [String: Value]
}
