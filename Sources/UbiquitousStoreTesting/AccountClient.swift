// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus
internal import StoreBus

/// A program's view of an account on the bus.
@BusActor
public final class AccountClient: ObjectClient {
    /// The interface of accounts.
    public static let interface = BusNames.accountInterface
    /// The program's connection.
    public let client: BusClient
    /// The account's object.
    public let path: String
    /// The signals received since ``subscribe()``, the newest last.
    public private(set) var received: [AccountSignal] = []

    private var match: Slot?

    /// Makes a view of the account at a path.
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
    /// - Throws: `BusError`, or ``DeadlinePassed`` if the download doesn't end.
    @discardableResult
    public func join(_ url: String, _ options: KeyValuePairs<String, Value> = [:]) async throws -> String {
        let identifier = try await signIn(url, options)
        try await eventually("the first download is complete") { try await isDownloaded() }
        return identifier
    }

    /// `SignOut`, with options by their names.
    public func signOut(_ options: KeyValuePairs<String, Value>) async throws {
        try await call("SignOut") { message in
            try message.appendDictionary { for (name, value) in options { try message.append(entry: name, value) } }
        }
    }

    /// `SignOut`.
    public func signOut(keepingValues: Bool? = nil) async throws {
        try await call("SignOut") { message in
            try message.appendDictionary {
                if let keepingValues { try message.append(entry: "keep-values", .boolean(keepingValues)) }
            }
        }
    }

    /// `GetRecoveryPhrase`.
    public func recoveryPhrase(flags: UInt64 = 0) async throws -> String {
        try await call("GetRecoveryPhrase") {
            try $0.append(flags)
        } decode: {
            try $0.readString()
        }
    }

    /// `Encrypt`.
    public func encrypt(_ options: KeyValuePairs<String, Value> = [:]) async throws {
        try await call("Encrypt") { message in
            try message.appendDictionary { for (name, value) in options { try message.append(entry: name, value) } }
        }
    }

    /// `ReplaceKey`.
    public func replaceKey() async throws { try await call("ReplaceKey") { try $0.appendDictionary {} } }

    /// `Unlock`.
    public func unlock(_ phrase: String) async throws {
        try await call("Unlock") { try $0.append(phrase) }
    }

    /// `SyncNow`.
    /// - Parameter verifies: whether the service reads back what it has uploaded.
    public func syncNow(verifying verifies: Bool = false) async throws {
        try await call("SyncNow") {
            try $0.append((verifies ? 0x1 : 0) as UInt64)
        }
    }

    /// `Resolve`.
    public func resolve(_ side: String) async throws {
        try await call("Resolve") {
            try $0.append(side)
        }
    }

    /// `SetPaused`.
    public func setPaused(_ isPaused: Bool) async throws {
        try await call("SetPaused") {
            try $0.append(isPaused)
        }
    }

    /// `SetStoreSynchronized`.
    public func setSynchronized(_ identifier: String, _ isOn: Bool) async throws {
        try await call("SetStoreSynchronized") {
            try $0.append(identifier)
            try $0.append(isOn)
        }
    }

    /// `ListDevices`.
    public func devices() async throws -> [[String: Value]] {
        try await call("ListDevices", decode: { try $0.readDictionaries() })
    }

    /// `RenameDevice`.
    public func rename(device identifier: String, to name: String) async throws {
        try await call("RenameDevice") {
            try $0.append(identifier)
            try $0.append(name)
        }
    }

    /// `ForgetDevice`.
    public func forget(device identifier: String) async throws {
        try await call("ForgetDevice") {
            try $0.append(identifier)
        }
    }

    /// Returns a property of the account that is a string.
    public func text(_ name: String) async throws -> String {
        if case .string(let text) = try await property(name) { text.string } else { "" }
    }

    /// `Subscribe`; from now on ``received`` collects the signals.
    public func subscribe() async throws {
        match = try await onSignal { [weak self] message in
            guard let state = try? message.readString(), let info = try? message.readDictionary() else { return }
            self?.received.append(AccountSignal(state: state, info: info))
        }
        try await call("Subscribe") {
            try $0.append(0 as UInt64)
        }
    }

    /// Returns the property State.
    public func state() async throws -> String {
        if case .string(let state) = try await property("State") { state.string } else { "" }
    }

    /// Returns the property LastErrorName, without the prefix of the service's errors.
    public func lastError() async throws -> String {
        guard case .string(let name) = try await property("LastErrorName") else { return "" }
        return name.string.split(separator: ".").last.map(String.init) ?? ""
    }

    /// Returns the property InitialSyncDone.
    public func isDownloaded() async throws -> Bool {
        try await property("InitialSyncDone") == .boolean(true)
    }
}

/// `AccountChanged`.
public struct AccountSignal: Equatable, Sendable {
    /// The new state.
    public let state: String
    /// The signal's `info`.
    public let info: [String: Value]
}
