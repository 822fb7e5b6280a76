// SPDX-License-Identifier: Apache-2.0

public import PropertyList
public import SDBus
internal import StoreBus

/// A program's view of a user's defaults domains on the bus.
@BusActor
public final class DefaultsClient: ObjectClient {
    /// The interface of a user's domains.
    public static let interface = BusNames.defaultsInterface
    /// The program's connection.
    public let client: BusClient
    /// The object's path.
    public let path: String

    init(_ client: BusClient, path: String) {
        self.client = client
        self.path = path
    }

    /// `OpenDomains`: a dictionary for each domain.
    public func open(_ domains: [String], program: String? = nil, subscribing: Bool = false) async throws
        -> [[String: Value]]
    {
        try await call("OpenDomains") { message in
            try message.append(strings: domains)
            try message.appendDictionary {
                if let program { try message.append(entry: "program", .string(Text(program))) }
                if subscribing { try message.append(entry: "subscribe", .boolean(true)) }
            }
        } decode: { answer in
            try answer.readOpenedDomains()
        }
    }

    /// `ListDomains`.
    public func list(_ flags: UInt64 = 0) async throws -> [String] {
        try await call("ListDomains") {
            try $0.append(flags)
        } decode: {
            try $0.readStrings()
        }
    }

    /// `RemoveDomain`.
    public func remove(_ domain: String, _ flags: UInt64 = 0) async throws {
        try await call("RemoveDomain") {
            try $0.append(domain)
            try $0.append(flags)
        }
    }
}

/// A program's view of a domain's layer on the bus.
@BusActor
public final class DomainClient: KeyedClient {
    /// The interface of a layer.
    public static let interface = BusNames.domainInterface
    /// The program's connection.
    public let client: BusClient
    /// The object's path.
    public let path: String
    /// The signals received since ``listen()``, the newest last.
    public private(set) var received: [StoreSignal] = []

    private var match: Slot?

    init(_ client: BusClient, path: String) {
        self.client = client
        self.path = path
    }

    /// `GetManaged`.
    public func managed() async throws -> [String: Value] {
        try await call("GetManaged") {
            try $0.append(0 as UInt64)
        } decode: {
            try $0.readDictionary()
        }
    }

    /// `Apply`.
    @discardableResult
    public func apply(
        _ set: [(key: String, value: Value)] = [], removing removed: [String] = [], replacing: Bool = false,
        ifGeneration: UInt64? = nil, unlessChangedSince base: UInt64? = nil
    ) async throws -> UInt64 {
        try await call("Apply") { message in
            try message.appendDictionary {
                for (key, value) in set { try message.append(entry: key, value) }
            }
            try message.append(strings: removed)
            try message.appendDictionary {
                if replacing { try message.append(entry: "replace", .boolean(true)) }
                if let ifGeneration { try message.append(option: "if-generation", ifGeneration) }
                if let base { try message.append(option: "unless-changed-since", base) }
            }
        } decode: {
            try $0.readUInt64()
        }
    }

    /// Sets one value.
    @discardableResult
    public func set(_ key: String, _ value: Value) async throws -> UInt64 { try await apply([(key, value)]) }

    /// `Subscribe`; from now on ``received`` collects the signals, from any sender.
    public func subscribe() async throws {
        try await listen()
        try await call("Subscribe") { try $0.append(0 as UInt64) }
    }

    /// Receives the layer's signals, whoever sends them.
    public func listen() async throws {
        if match == nil { match = try await onSignal { [weak self] in try? self?.receive($0) } }
    }

    private func receive(_ message: Message) throws {
        received.append(try StoreSignal(message))
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
}

extension BusClient {
    /// The defaults domains of the client's user.
    public var defaults: DefaultsClient { DefaultsClient(self, path: BusNames.defaultsPath(uid: uid)) }

    /// Returns a layer of a domain of the client's user.
    /// - Throws: `BusError` if the name contains U+0000.
    public func domain(_ name: String, isHost: Bool = false) throws -> DomainClient {
        DomainClient(self, path: try BusNames.domainPath(uid: uid, domain: name, isHost: isHost))
    }
}
