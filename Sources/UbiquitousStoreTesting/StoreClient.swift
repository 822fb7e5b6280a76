// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus
internal import StoreBus

/// A program's view of a store on the bus.
@BusActor
public final class StoreClient: KeyedClient {
    /// The interface of stores.
    public static let interface = BusNames.storeInterface
    /// The program's connection.
    public let client: BusClient
    /// The store's object.
    public let path: String
    /// The signals received since ``subscribe(_:)``, the newest last.
    public private(set) var received: [StoreSignal] = []

    private var match: Slot?
    private var continuations: [AsyncStream<StoreSignal>.Continuation] = []

    /// Makes a view of the store at a path.
    public init(_ client: BusClient, path: String) {
        self.client = client
        self.path = path
    }

    // MARK: Reading

    /// `GetValues`.
    public func values(_ keys: [String]) async throws -> [Text: Value] {
        try await call("GetValues") {
            try $0.append(strings: keys)
        } decode: {
            try $0.readTexts()
        }
    }

    /// Returns everything that the store holds.
    public func everything() async throws -> [Text: Value] { try await snapshot().values }

    /// Returns the property Generation.
    public func generation() async throws -> UInt64 {
        guard case .integer(let generation) = try await property("Generation") else { return 0 }
        return UInt64(generation)
    }

    // MARK: Writing

    /// `SetValue`.
    @discardableResult
    public func set(_ key: String, _ value: Value) async throws -> UInt64 {
        try await set(key) { try $0.append(variant: value) }
    }

    /// `SetValue`, with a variant that the caller writes.
    @discardableResult
    public func set(_ key: String, variant: @BusActor (Message) throws -> Void) async throws -> UInt64 {
        try await call("SetValue") {
            try $0.append(key)
            try variant($0)
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `RemoveValue`.
    @discardableResult
    public func remove(_ key: String) async throws -> UInt64 {
        try await call("RemoveValue") {
            try $0.append(key)
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `Apply`.
    @discardableResult
    public func apply(
        _ set: KeyValuePairs<String, Value> = [:],
        removing removed: [String] = [],
        ifGeneration: UInt64? = nil
    ) async throws -> UInt64 {
        try await apply(Array(set), removing: removed) { message in
            if let ifGeneration { try message.append(option: "if-generation", ifGeneration) }
        }
    }

    /// `Apply`, with options that the caller writes.
    @discardableResult
    public func apply(
        _ set: [(key: String, value: Value)],
        removing removed: [String] = [],
        options: @BusActor (Message) throws -> Void
    ) async throws -> UInt64 {
        try await call("Apply") { message in
            try message.appendDictionary {
                for (key, value) in set { try message.append(entry: key, value) }
            }
            try message.append(strings: removed)
            try message.appendDictionary { try options(message) }
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `Synchronize`.
    @discardableResult
    public func synchronize(_ flags: UInt64 = 0) async throws -> Bool {
        try await call("Synchronize") {
            try $0.append(flags)
        } decode: {
            try $0.readBool()
        }
    }

    // MARK: Signals

    /// `Subscribe`; from now on ``received`` collects the signals, from any sender.
    @discardableResult
    public func subscribe(_ flags: UInt64 = 0) async throws -> UInt64 {
        try await listen()
        return try await call("Subscribe") {
            try $0.append(flags)
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `Unsubscribe`; ``received`` keeps collecting signals, of which there should be none.
    public func unsubscribe() async throws {
        try await call("Unsubscribe")
    }

    /// The signals from now on.
    public var signals: AsyncStream<StoreSignal> {
        let (stream, continuation) = AsyncStream.makeStream(of: StoreSignal.self)
        continuations.append(continuation)
        return stream
    }

    /// Waits for a signal, among those already received and those to come.
    /// - Throws: ``DeadlinePassed`` if none comes.
    public func signal(_ what: String, where condition: (StoreSignal) -> Bool) async throws -> StoreSignal {
        var found: StoreSignal?
        try await eventually("the signal comes: \(what); there were \(received)") {
            found = received.first(where: condition)
            return found != nil
        }
        guard let found else { throw DeadlinePassed(description: what) }
        return found
    }

    /// Discards the received signals.
    public func forgetSignals() { received = [] }

    /// Starts to receive this store's signals, from any sender.
    public func listen() async throws {
        if match != nil { return }
        match = try await onSignal { [weak self] in try? self?.receive($0) }
    }

    private func receive(_ message: Message) throws {
        let signal = try StoreSignal(message)
        received.append(signal)
        for continuation in continuations { continuation.yield(signal) }
    }
}

/// The result of `GetSnapshot`.
public struct StoreSnapshot: Equatable, Sendable {
    /// The generation of this snapshot.
    public let generation: UInt64
    /// Whether the values are the whole store.
    public let isComplete: Bool
    /// Keys and values.
    public let values: [Text: Value]
    /// Keys that were removed.
    public let removed: [String]
}

/// `DidChangeExternally`.
public struct StoreSignal: Equatable, Sendable {
    /// The reason.
    public let reason: UInt32
    /// The keys, in the order of the signal.
    public let keys: [String]
    /// The generation after the change.
    public let generation: UInt64
    /// The signal's `info`.
    public let info: [String: Value]
    /// The unique name of the sender.
    public let sender: String

    /// Makes a signal, to compare with.
    public init(reason: UInt32, keys: [String], generation: UInt64) {
        (self.reason, self.keys, self.generation) = (reason, keys, generation)
        (info, sender) = ([:], "")
    }

    init(_ message: Message) throws {
        reason = try message.readUInt32()
        keys = try message.readStrings()
        generation = try message.readUInt64()
        info = try message.readDictionary()
        sender = message.sender ?? ""
    }
}
