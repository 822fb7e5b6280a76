// SPDX-License-Identifier: Apache-2.0

internal import Glibc
package import ManagedDefaults
package import PropertyList
package import SDBus
internal import StoreBus
package import UbiquitousStore

/// The signal `DidChange`.
struct DomainSignal: Sendable {
    let domain: Text
    let isHost: Bool
    let reason: UInt32

    init(_ message: Message, path: String, uid: UInt32) throws {
        reason = try message.readUInt32()
        _ = try message.readStrings()
        _ = try message.readUInt64()
        isHost = try message.readDictionary()["host"] == .boolean(true)
        let prefix = BusNames.defaultsPath(uid: uid)
        guard let name = ObjectPath.decode(path, prefix: prefix) else {
            throw BusError.invalidArguments("The signal is of no domain.")
        }
        domain = Text(name)
    }
}

/// A layer of a user's domain.
package struct LayerAddress: Hashable, Sendable {
    /// The domain's name.
    package let domain: Text
    /// Whether it is the layer for this host only.
    package let isHost: Bool
    /// The user whose layer it is.
    package let uid: UInt32

    /// Makes a layer; by default of this process's user.
    package init(_ domain: Text, isHost: Bool = false, uid: UInt32 = geteuid()) {
        (self.domain, self.isHost, self.uid) = (domain, isHost, uid)
    }
}

/// Calls that concern domains.
extension ServiceConnection {
    /// `ListDomains`.
    package func domains(includingManaged: Bool = false, ofUser uid: UInt32 = geteuid()) async throws -> [String] {
        try await call(BusNames.defaultsPath(uid: uid), BusNames.defaultsInterface, "ListDomains") {
            try $0.append(includingManaged ? 0x1 : 0 as UInt64)
        } decode: {
            try $0.readStrings()
        }
    }

    /// `RemoveDomain`.
    package func removeDomain(_ name: String, includingHost: Bool, ofUser uid: UInt32 = geteuid()) async throws {
        try await call(BusNames.defaultsPath(uid: uid), BusNames.defaultsInterface, "RemoveDomain") {
            try $0.append(name)
            try $0.append(includingHost ? 0x1 : 0 as UInt64)
        } decode: { _ in
        }
    }

    /// `OpenDomains`.
    ///
    /// - Parameters:
    ///   - program: the path of this program, if it may have a domain of its own.
    ///   - isSubscribing: whether to subscribe to each domain.
    func openDomains(
        _ names: [String], program: String?, subscribing isSubscribing: Bool = true, ofUser uid: UInt32 = geteuid()
    ) async throws -> [OpenedDomain] {
        let path = BusNames.defaultsPath(uid: uid)
        let answers = try await call(path, BusNames.defaultsInterface, "OpenDomains", timeout: .seconds(60)) {
            message in
            try message.append(strings: names)
            try message.appendDictionary {
                try message.append(entry: "subscribe", .boolean(isSubscribing))
                if let program { try message.append(entry: "program", .string(Text(program))) }
            }
        } decode: {
            try $0.readOpenedDomains()
        }
        return answers.compactMap(OpenedDomain.init)
    }

    /// `Apply`.
    ///
    /// - Parameters:
    ///   - replacing: whether the set values replace everything that the layer has.
    ///   - expected: the generation that the layer must have; otherwise throws ``UbiquitousStoreError/Code/conflict``.
    ///   - base: keys that changed after this generation stay as they are; excludes the other options.
    @discardableResult
    package func apply(
        _ changes: Changes, to place: LayerAddress, replacing: Bool = false, ifGeneration expected: UInt64? = nil,
        unlessChangedSince base: UInt64? = nil
    ) async throws -> UInt64 {
        try await domain(place, "Apply", timeout: .seconds(Int64.max)) { message in
            try message.appendDictionary {
                for case (let key, let value?) in changes { try message.append(entry: key.string, value) }
            }
            try message.append(strings: changes.lazy.filter { $0.value == nil }.map(\.key.string))
            try message.appendDictionary {
                if replacing { try message.append(entry: "replace", .boolean(true)) }
                if let expected { try message.append(option: "if-generation", expected) }
                if let base { try message.append(option: "unless-changed-since", base) }
            }
        } decode: {
            try $0.readUInt64()
        }
    }

    /// `GetSnapshot`.
    package func snapshot(_ place: LayerAddress, since generation: UInt64 = 0) async throws -> Snapshot {
        try await domain(place, "GetSnapshot") { message in
            try message.append(generation)
            try message.append(0 as UInt64)
        } decode: {
            Snapshot(
                generation: try $0.readUInt64(), isComplete: try $0.readBool(), values: try $0.readTexts(),
                removed: try $0.readStrings().map { Text($0) })
        }
    }

    /// `Synchronize`.
    package func synchronize(_ place: LayerAddress) async throws {
        try await domain(place, "Synchronize") {
            try $0.append(0 as UInt64)
        } decode: { _ in
        }
    }

    /// `GetHistory`.
    package func history(_ key: String, _ place: LayerAddress) async throws -> [[String: Value]] {
        try await domain(place, "GetHistory") { message in
            try message.append(key)
            try message.append(0 as UInt64)
        } decode: {
            try $0.readDictionaries()
        }
    }

    /// `GetManaged`.
    package func managed(_ place: LayerAddress) async throws -> ManagedDomain {
        try await domain(place, "GetManaged") {
            try $0.append(0 as UInt64)
        } decode: { answer in
            var managed: [Text: Value] = [:]
            try answer.readDictionary { managed[Text($0)] = try answer.readDeepValue() }
            return ManagedDomain(answer: managed)
        }
    }

    /// Calls `handler` with each change of a layer that the service signals to this connection, as long as the slot is
    /// held. The service sends none before ``subscribe(to:)``.
    package func onChange(of place: LayerAddress, _ handler: @escaping @BusActor () -> Void) async throws -> Slot {
        let path = try BusNames.domainPath(uid: place.uid, domain: place.domain.string, isHost: place.isHost)
        let rule = """
            type='signal',sender='\(BusNames.service)',interface='\(BusNames.domainInterface)',member='DidChange',\
            path='\(path)'
            """
        return try await bus.addMatch(rule) { [weak self] signal in
            if let owner = self?.owner, signal.sender == owner { handler() }
        }
    }

    /// `Subscribe`.
    package func subscribe(to place: LayerAddress) async throws {
        try await domain(place, "Subscribe") {
            try $0.append(0 as UInt64)
        } decode: { _ in
        }
    }

    private func domain<Result: Sendable>(
        _ place: LayerAddress, _ member: String, timeout: Duration? = nil,
        _ build: (Message) throws -> Void, decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        let path = try BusNames.domainPath(uid: place.uid, domain: place.domain.string, isHost: place.isHost)
        return try await call(path, BusNames.domainInterface, member, timeout: timeout, build: build, decode: decode)
    }
}

extension OpenedDomain {
    fileprivate init?(_ answer: [String: Value]) {
        guard case .string(let name)? = answer["domain"] else { return nil }
        self.name = name
        if case .string(let store)? = answer["store"] { self.store = store.string }
        if answer["omitted"] == .boolean(true) { return }
        values = Self.layer(answer["generation"], answer["values"])
        host = Self.layer(answer["host-generation"], answer["host-values"])
        if case .dictionary(let managed)? = answer["managed"] { self.managed = ManagedDomain(answer: managed) }
    }

    private static func layer(_ generation: Value?, _ values: Value?) -> (UInt64, [Text: Value])? {
        guard case .integer(let generation)? = generation, case .dictionary(let values)? = values else { return nil }
        return (UInt64(clamping: generation), values)
    }
}

extension ManagedDomain {
    fileprivate init(answer: [Text: Value]) {
        self.init()
        forced = Self.dictionary(answer["forced"])
        recommended = Self.dictionary(answer["recommended"])
        locked = KeyPatterns(Self.texts(answer["locked"]))
        // If absent, the manifest's keys roam; if empty, none do.
        ubiquitous = answer["ubiquitous"].map { KeyPatterns(Self.texts($0)) }
        sources = Self.paths(answer["sources"])
        recommendedSources = Self.paths(answer["recommended-sources"])
    }

    private static func paths(_ value: Value?) -> [Text: String] {
        dictionary(value).compactMapValues { if case .string(let path) = $0 { path.string } else { nil } }
    }

    private static func dictionary(_ value: Value?) -> [Text: Value] {
        if case .dictionary(let values)? = value { values } else { [:] }
    }

    private static func texts(_ value: Value?) -> [Text] {
        guard case .array(let values)? = value else { return [] }
        return values.compactMap { if case .string(let text) = $0 { text } else { nil } }
    }
}
