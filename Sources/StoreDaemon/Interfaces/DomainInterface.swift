// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore.Domain: one layer of a defaults domain. StoreInterface.swift has what it shares with
// stores.

internal import PropertyList
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserStore {
    // MARK: Writing

    fileprivate func applyToLayer(_ call: MethodCall, _ daemon: Daemon) throws {
        let client = daemon.clients.client(call.peer)
        guard let layer, user.domains.access(of: client.identity, to: layer.domain) == .write else {
            throw BusError.accessDenied("A sandboxed app may read this domain and not write to it.")
        }
        var budget = ValueBudget(for: store.limits, memory: Self.largestChange)
        var values: [(key: String, value: Value)] = []
        do { try call.message.readValues(into: &values, &budget) } catch  where budget.isExceeded {
            let keys = try values.map { try Key($0.key, limit: store.limits.keyLength) }
            return try refuse(call, daemon, keys, needing: budget.bytes)
        }
        try apply(try LayerChange(values, call.message, limits: store.limits), call, client, daemon)
    }

    private func apply(_ change: LayerChange, _ call: MethodCall, _ client: Client, _ daemon: Daemon) throws {
        if change.isConditional { daemon.writes.commit() }
        if !change.values.isEmpty { try checkRoom(for: change, of: client.identity) }
        let weight = weight(after: change)
        guard weight <= Self.heaviestLayer || weight <= self.weight else { throw tooHeavy(weight) }
        try daemon.writes.add(call, client, self) { store in
            let keys = try change.stage(in: store)
            // If the change applied to some keys only, the layer's weight is computed when it is needed.
            if !keys.isEmpty { noteStaged(weight: keys.count == change.count ? weight : nil) }
            return keys
        }
    }

    private func checkRoom(for change: LayerChange, of caller: CallerIdentity) throws {
        try user.domains.checkRoom(for: self, of: caller)
        let bytes = change.values.reduce(0) { $0 + $1.1.marshalledSize }
        try user.domains.checkRoom(forBytes: bytes, of: caller)
        try checkRoom(for: change.values)
    }

    private func weight(after change: LayerChange) -> Int {
        let added = change.values.reduce(0) { $0 + Value.entrySize($1.0.text, $1.1) }
        if change.replaces { return added }
        let replaced = change.values.map(\.0) + change.removed
        return replaced.reduce(weight + added) { sum, key in
            store.value(for: key).map { sum - Value.entrySize(key.text, $0) } ?? sum
        }
    }

    private func tooHeavy(_ weight: Int) -> BusError {
        .store(
            .quotaExceeded,
            """
            The domain's values would take \(weight) bytes in a D-Bus message, and \(Self.heaviestLayer) is the most. \
            Keep large data in files.
            """)
    }

    /// The most memory that the values of one call may take while they are read, in bytes.
    private static let largestChange = 64 << 20
    /// The most bytes that a layer's values may take in a message. A message of 32 MiB disconnects its sender.
    private static let heaviestLayer = 12 << 20

    // MARK: Reading

    fileprivate func getManaged(_ call: MethodCall) throws {
        _ = try call.message.readFlags()
        guard let layer else { throw BusError.failed("This is not a domain.") }
        let managed = user.domains.managed(layer.domain, for: call.peer)
        try call.reply { reply in
            try reply.appendDictionary { try reply.append(managed: managed) }
        }
    }

    // MARK: Subscribing

    fileprivate func subscribeToDomain(_ call: MethodCall, _ daemon: Daemon) throws {
        _ = try call.message.readFlags()
        let path = call.message.path ?? path
        // To load the other layer may release what nobody is subscribed to.
        hold()
        defer { release() }
        try subscribe(call.peer, alsoTo: try host(of: path, for: call.peer, daemon), at: path, daemon)
        try call.reply { try $0.append(store.generation) }
    }

    /// Subscribes to a layer and to that for this host. The signals of both come from this layer's path.
    ///
    /// - Parameter path: the path by which the caller knows the layer.
    func subscribe(_ peer: Peer, alsoTo host: UserStore?, at path: String, _ daemon: Daemon) throws {
        let client = daemon.clients.client(peer)
        if !isSubscribed(client, at: path) { try daemon.clients.checkDomainSubscriptions(of: client) }
        daemon.clients.hold(self, at: path, client, peer)
        subscribe(client, peer, at: path, includingLocal: true)
        host?.subscribe(client, peer, at: path, includingLocal: true)
    }

    /// Returns the layer for this host of the domain at a path; `nil` if this is that layer.
    private func host(of path: String, for peer: Peer, _ daemon: Daemon) throws -> UserStore? {
        layer?.isHost == true ? nil : try daemon.clients.layer(at: path + BusNames.hostSuffix, for: peer)
    }

    fileprivate func unsubscribeFromDomain(_ call: MethodCall, _ daemon: Daemon) throws {
        let client = daemon.clients.client(call.peer)
        let path = call.message.path ?? path
        unsubscribe(client, at: path)
        try host(of: path, for: call.peer, daemon)?.unsubscribe(client, at: path)
        try call.reply()
    }

    // MARK: The table

    /// Every method, signal and property of the interface, in the order of its XML.
    static func domainInterface(_ daemon: Daemon) -> Interface<UserStore> {
        Interface(
            BusNames.domainInterface,
            [
                .method("GetValue", in: ["key": "s"], out: ["value": "v"], by: .everybody, on: daemon) {
                    try $0.getValue($1)
                },
                .method(
                    "GetSnapshot", in: ["since_generation": "t", "flags": "t"],
                    out: ["generation": "t", "complete": "b", "values": "a{sv}", "removed": "as"], by: .everybody,
                    on: daemon
                ) { try $0.getSnapshot($1) },
                .write("Apply", in: ["set": "a{sv}", "remove": "as", "options": "a{sv}"], on: daemon) {
                    try $0.applyToLayer($1, daemon)
                },
                .method("Synchronize", in: ["flags": "t"], out: ["accepted": "b"], by: .everybody, on: daemon) {
                    try $0.synchronizeLayer($1, daemon)
                },
                .method(
                    "GetHistory", in: ["key": "s", "flags": "t"], out: ["history": "aa{sv}"], by: .everybody, on: daemon
                ) {
                    try $0.getHistory($1)
                },
                .method("GetManaged", in: ["flags": "t"], out: ["managed": "a{sv}"], by: .everybody, on: daemon) {
                    try $0.getManaged($1)
                },
                .method("Subscribe", in: ["flags": "t"], out: ["generation": "t"], by: .everybody, on: daemon) {
                    try $0.subscribeToDomain($1, daemon)
                },
                .method("Unsubscribe", by: .everybody, on: daemon) { try $0.unsubscribeFromDomain($1, daemon) },
                .signal("DidChange", ["reason": "u", "changed_keys": "as", "generation": "t", "info": "a{sv}"]),
                .property("Domain", "s", changes: .never, to: .everybody, on: daemon) { layer, message in
                    try message.append(layer.layer?.domain ?? "")
                },
                .property("Host", "b", changes: .never, to: .everybody, on: daemon) { layer, message in
                    try message.append(layer.layer?.isHost ?? false)
                },
                .property("User", "u", changes: .never, to: .everybody, on: daemon) { layer, message in
                    try message.append(layer.user.uid)
                },
                .property("Generation", "t", changes: .silently, to: .everybody, on: daemon) { layer, message in
                    try message.append(layer.store.generation)
                },
                .property("KeyCount", "u", changes: .silently, to: .everybody, on: daemon) { layer, message in
                    try message.append(UInt32(clamping: layer.store.usage.keys))
                },
                .property("BytesUsed", "t", changes: .silently, to: .everybody, on: daemon) { layer, message in
                    try message.append(UInt64(layer.store.usage.bytes))
                },
            ])
    }

    fileprivate func synchronizeLayer(_ call: MethodCall, _ daemon: Daemon) throws {
        _ = try call.message.readFlags()
        call.answer(on: daemon) {
            try await self.user.database.synchronize()
            return true
        } reply: {
            try $0.append($1)
        }
    }
}

/// The change that a call of `Apply` asks for.
private struct LayerChange {
    let values: [(Key, Value)]
    let removed: [Key]
    /// Whether keys that are not set are removed.
    let replaces: Bool
    private let expected: UInt64?
    /// A generation; keys that have changed after it stay as they are.
    private let base: UInt64?

    var isConditional: Bool { expected != nil || base != nil }

    init(_ values: [(key: String, value: Value)], _ message: Message, limits: Limits) throws {
        self.values = try values.map { (try Key($0.key, limit: limits.keyLength), $0.value) }
        removed = try message.readStrings(atMost: Self.mostKeys).map { try Key($0, limit: limits.keyLength) }
        let options = try message.readOptions(["if-generation": "t", "replace": "b", "unless-changed-since": "t"])
        replaces = options.boolean("replace", default: false)
        expected = options.unsigned("if-generation")
        base = options.unsigned("unless-changed-since")
        guard base == nil || (expected == nil && !replaces) else {
            throw BusError.invalidArguments("The option \"unless-changed-since\" goes with no other option.")
        }
        if removed.isEmpty { return }
        var seen = Set(self.values.map(\.0))
        for key in removed where !seen.insert(key).inserted {
            throw BusError.invalidArguments("The key \"\(key)\" comes twice.")
        }
    }

    /// The most keys that a call may name. A layer has no more.
    private static let mostKeys = 65_536

    /// How many keys the call names.
    var count: Int { values.count + removed.count }

    func stage(in store: Store) throws(EngineError) -> [Key] {
        if let base { return try store.stage(setting: values, removing: removed, unlessChangedSince: base) }
        guard replaces else { return try store.stage(setting: values, removing: removed, ifGeneration: expected) }
        let kept = Set(values.map(\.0))
        let rest = store.values.keys.filter { !kept.contains($0) }
        return try store.stage(setting: values, removing: rest, ifGeneration: expected)
    }
}
