// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore: an app's store.

internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserStore {
    // MARK: Reading

    func getValue(_ call: MethodCall) throws {
        try checkReadable()
        let name = try call.message.readKeyText()
        // An overlong name is not repeated, because the answer would be as large as the call.
        guard let key = try? Key(name, limit: store.limits.keyLength) else {
            throw BusError.store(.noSuchKey, "There can be no such key.")
        }
        guard let value = store.value(for: key) else {
            throw BusError.store(.noSuchKey, "There is no key \"\(name)\".")
        }
        try call.reply { try $0.append(variant: value) }
    }

    fileprivate func getValues(_ call: MethodCall) throws {
        try checkReadable()
        let keys = try Set(call.message.readStrings(atMost: Self.mostKeys).map { Text($0) })
        try call.reply { reply in
            try reply.appendDictionary {
                for name in keys {
                    guard let key = try? Key(name.string), let value = store.value(for: key) else { continue }
                    try reply.append(entry: name.string, value)
                }
            }
        }
    }

    /// The most keys that a call may name. A store has no more.
    private static let mostKeys = 65_536

    func getSnapshot(_ call: MethodCall) throws {
        try checkReadable()
        let since = try call.message.readUInt64()
        _ = try call.message.readFlags()
        try call.reply { reply in
            try reply.append(store.generation)
            if store.knowsChanges(since: since) {
                try append(store.changes(since: since), to: reply)
            } else {
                try appendEverything(to: reply)
            }
        }
    }

    private func append(_ changes: [Key: Value?], to reply: Message) throws {
        try reply.append(false)
        try reply.appendDictionary {
            for case (let key, let value?) in changes { try reply.append(entry: key.string, value) }
        }
        try reply.append(strings: changes.filter { $0.value == nil }.keys.sorted().map(\.string))
    }

    private func appendEverything(to reply: Message) throws {
        try reply.append(true)
        try reply.appendDictionary {
            try store.forEachValue { key, value in try reply.append(entry: key.string, value) }
        }
        try reply.append(strings: [])
    }

    /// Values that were lost with a damaged database must not appear absent before they come back from the remote.
    private func checkReadable() throws(BusError) {
        guard layer == nil, user.database.isAwaitingRemote, user.account.sync.isSignedIn else { return }
        throw .store(.corrupt, "The database was damaged; its values are on their way from the account's remote.")
    }

    // MARK: Writing

    fileprivate func setValue(_ call: MethodCall, _ daemon: Daemon) throws {
        let key = try call.message.readKey()
        var budget = ValueBudget(for: user.database.limits)
        do {
            try set(key, try call.message.readValue(&budget), call, daemon)
        } catch  where budget.isExceeded {
            try refuse(call, daemon, [key], needing: budget.bytes)
        }
    }

    /// Throws if there is no room for values, on the disk or in memory. What is there already takes none.
    func checkRoom(for values: [(Key, Value)]) throws {
        if values.isEmpty { return }
        // There usually is room for all of them. To look up what they replace takes as long as to write them.
        let growth = Self.memory(of: values)
        if user.room.admit(memory: growth, bytes: Self.bytes(of: values), in: store) { return noteGrown(by: growth) }
        let news = values.filter { !store.holds($0.1, for: $0.0) }
        if news.isEmpty { return }
        let replaced = store.present(news.map(\.0))
        let leastGrowth = Self.memory(of: news) - Self.memory(of: replaced)
        try makeRoom(for: leastGrowth)
        try user.room.check(for: store, bytes: Self.bytes(of: news), replacing: Self.bytes(of: replaced))
        noteGrown(by: leastGrowth)
    }

    /// About how many bytes values take in the database.
    nonisolated private static func bytes(of values: [(Key, Value)]) -> Int { values.reduce(0) { $0 + $1.1.rowSize } }

    private func set(_ key: Key, _ value: Value, _ call: MethodCall, _ daemon: Daemon) throws {
        let values = [(key, value)]
        try checkLocalKeys(CollectionOfOne(key))
        try checkRoom(for: values)
        try write(call, daemon) { try $0.stage(setting: values, removing: []) }
    }

    fileprivate func removeValue(_ call: MethodCall, _ daemon: Daemon) throws {
        let key = try call.message.readKey()
        try checkLocalKeys(CollectionOfOne(key))
        try write(call, daemon) { try $0.stage(setting: [], removing: [key]) }
    }

    fileprivate func apply(_ call: MethodCall, _ daemon: Daemon) throws {
        var budget = ValueBudget(for: user.database.limits)
        var values: [(key: String, value: Value)] = []
        do { try call.message.readValues(into: &values, &budget) } catch  where budget.isExceeded {
            return try refuse(call, daemon, keyed(values).map(\.0), needing: budget.bytes)
        }
        try apply(try keyed(values), call, daemon)
    }

    private func apply(_ values: [(Key, Value)], _ call: MethodCall, _ daemon: Daemon) throws {
        let removed = try call.message.readStrings(atMost: Self.mostKeys).map { try Key($0) }
        let options = try call.message.readOptions(["if-generation": "t", "unless-changed-since": "t", "set-at": "t"])
        let (expected, base) = (options.unsigned("if-generation"), options.unsigned("unless-changed-since"))
        let time = options.unsigned("set-at")
        guard base == nil || expected == nil, time == nil || base != nil else {
            throw BusError.invalidArguments(
                "The option \"unless-changed-since\" doesn't go with \"if-generation\", and \"set-at\" only with it.")
        }
        // Reading has ensured that no key is set twice.
        if !removed.isEmpty { try checkDistinct(values.map(\.0) + removed) }
        try checkLocalKeys(values.lazy.map(\.0))
        try checkLocalKeys(removed)
        try checkRoom(for: values)
        if !options.isEmpty { daemon.writes.commit() }
        try write(call, daemon) {
            guard let base else { return try $0.stage(setting: values, removing: removed, ifGeneration: expected) }
            return try $0.stage(setting: values, removing: removed, unlessChangedSince: base, setAt: time)
        }
    }

    /// Refuses values that are too large, and were therefore not read to their end.
    func refuse(_ call: MethodCall, _ daemon: Daemon, _ keys: [Key], needing bytes: Int) throws {
        let maximum = store.limits.totalBytes
        try write(call, daemon) { store throws in
            throw EngineError.quota(
                QuotaViolation(
                    limit: .totalBytes, maximum: maximum, used: store.usage.bytes, needed: bytes, keys: keys))
        }
    }

    private func checkLocalKeys(_ keys: some Sequence<Key>) throws {
        if layer == nil { try user.localKeys.check(store, among: keys) }
    }

    private func checkDistinct(_ keys: [Key]) throws(BusError) {
        var seen = Set<Key>(minimumCapacity: keys.count)
        for key in keys where !seen.insert(key).inserted {
            throw .invalidArguments("The key \"\(key)\" comes twice.")
        }
    }

    private func write(_ call: MethodCall, _ daemon: Daemon, stage: (Store) throws -> [Key]) throws {
        try daemon.writes.add(call, daemon.clients.client(call.peer), self, stage: stage)
    }

    fileprivate func synchronize(_ call: MethodCall, _ daemon: Daemon) throws {
        let waits = try call.message.readFlags(0x1) != 0
        let account = user.account.sync
        call.answer(on: daemon) {
            try await self.user.database.synchronize()
            if waits {
                guard account.isSignedIn else { throw BusError.store(.notSignedIn, "No account is signed in.") }
                guard self.store.isSynchronized else {
                    throw BusError.store(.conflict, User.takesNoPart(self.store.identifier))
                }
                try await account.syncNow(for: .app)
                return true
            }
            if self.store.pendingChanges == 0 { return true }
            account.hasten()
            return account.isUploading && self.store.isSynchronized
        } reply: {
            try $0.append($1)
        }
    }

    // MARK: History

    func getHistory(_ call: MethodCall) throws {
        try checkReadable()
        let name = try call.message.readKeyText()
        _ = try call.message.readFlags()
        guard let key = try? Key(name, limit: store.limits.keyLength) else {
            throw BusError.store(.noSuchKey, "There can be no such key.")
        }
        let values = try user.database.history.values(of: key, in: store)
        try call.reply { reply in
            try reply.container("a", "a{sv}") {
                for former in values { try append(former, to: reply) }
            }
        }
    }

    private func append(_ former: FormerValue, to reply: Message) throws {
        try reply.appendDictionary {
            try reply.append(entry: "value", former.value)
            try reply.container("e", "sv") {
                try reply.append("when")
                try reply.container("v", "t") { try reply.append(former.time) }
            }
            if let device = user.account.sync.devices.identifier(of: former.origin) {
                try reply.append(entry: "origin-device", .string(Text(device)))
            }
            try reply.append(entry: "why", .string(Text(former.why.wireName)))
        }
    }

    // MARK: Subscribing

    fileprivate func subscribe(_ call: MethodCall, _ daemon: Daemon) throws {
        let includesLocal = try call.message.readFlags(0x1) != 0
        let client = daemon.clients.client(call.peer)
        let path = call.message.path ?? path
        if !isSubscribed(client, at: path) { try daemon.clients.checkSubscriptions(of: client) }
        daemon.clients.hold(self, at: path, client, call.peer)
        subscribe(client, call.peer, at: path, includingLocal: includesLocal)
        try call.reply { try $0.append(store.generation) }
    }

    fileprivate func unsubscribe(_ call: MethodCall, _ daemon: Daemon) throws {
        unsubscribe(daemon.clients.client(call.peer), at: call.message.path ?? path)
        try call.reply()
    }

    // MARK: The table

    /// Every method, signal and property of the interface, in the order of its XML.
    static func interface(_ daemon: Daemon) -> Interface<UserStore> {
        Interface(
            BusNames.storeInterface,
            [
                .method("GetValue", in: ["key": "s"], out: ["value": "v"], by: .everybody, on: daemon) {
                    try $0.getValue($1)
                },
                .method("GetValues", in: ["keys": "as"], out: ["values": "a{sv}"], by: .everybody, on: daemon) {
                    try $0.getValues($1)
                },
                .method(
                    "GetSnapshot", in: ["since_generation": "t", "flags": "t"],
                    out: ["generation": "t", "complete": "b", "values": "a{sv}", "removed": "as"], by: .everybody,
                    on: daemon
                ) { try $0.getSnapshot($1) },
                .write("SetValue", in: ["key": "s", "value": "v"], on: daemon) { try $0.setValue($1, daemon) },
                .write("RemoveValue", in: ["key": "s"], on: daemon) { try $0.removeValue($1, daemon) },
                .write("Apply", in: ["set": "a{sv}", "remove": "as", "options": "a{sv}"], on: daemon) {
                    try $0.apply($1, daemon)
                },
                .method("Synchronize", in: ["flags": "t"], out: ["accepted": "b"], by: .everybody, on: daemon) {
                    try $0.synchronize($1, daemon)
                },
                .method(
                    "GetHistory", in: ["key": "s", "flags": "t"], out: ["history": "aa{sv}"], by: .everybody, on: daemon
                ) {
                    try $0.getHistory($1)
                },
                .method("Subscribe", in: ["flags": "t"], out: ["generation": "t"], by: .everybody, on: daemon) {
                    try $0.subscribe($1, daemon)
                },
                .method("Unsubscribe", by: .everybody, on: daemon) { try $0.unsubscribe($1, daemon) },
                .signal(
                    "DidChangeExternally",
                    ["reason": "u", "changed_keys": "as", "generation": "t", "info": "a{sv}"]),
                .property("Identifier", "s", changes: .never, to: .everybody, on: daemon) { store, message in
                    try message.append(store.identifier)
                },
                .property("Synchronized", "b", changes: .silently, to: .everybody, on: daemon) { store, message in
                    try message.append(store.store.isSynchronized)
                },
                .property("User", "u", changes: .never, to: .everybody, on: daemon) { store, message in
                    try message.append(store.user.uid)
                },
                .property("Generation", "t", changes: .silently, to: .everybody, on: daemon) { store, message in
                    try message.append(store.store.generation)
                },
                .property("KeyCount", "u", changes: .silently, to: .everybody, on: daemon) { store, message in
                    try message.append(UInt32(clamping: store.store.usage.keys))
                },
                .property("BytesUsed", "t", changes: .silently, to: .everybody, on: daemon) { store, message in
                    try message.append(UInt64(store.store.usage.bytes))
                },
                .property("Limits", "a{st}", changes: .never, to: .everybody, on: daemon) { store, message in
                    try message.append(store.user.database.limits)
                },
                .property("PendingChanges", "u", changes: .silently, to: .everybody, on: daemon) { store, message in
                    try message.append(UInt32(clamping: store.store.isSynchronized ? store.store.pendingChanges : 0))
                },
                .property("InitialSyncDone", "b", changes: .silently, to: .everybody, on: daemon) { store, message in
                    try message.append(store.store.isDownloaded && store.user.account.sync.isSignedIn)
                },
            ])
    }
}

/// Outside of the type, because a closure in the actor's code would check the executor at each call.
private func keyed(_ values: [(key: String, value: Value)]) throws -> [(Key, Value)] {
    try values.map { (try Key($0.key), $0.value) }
}

extension Message {
    /// Writes limits as `a{st}`.
    func append(_ limits: Limits) throws {
        try container("a", "{st}") {
            for (name, value) in limits.namedValues {
                try container("e", "st") {
                    try append(name)
                    try append(value)
                }
            }
        }
    }
}

extension Value {
    /// About how many bytes the value takes in the database.
    fileprivate var rowSize: Int {
        switch self {
        case .boolean, .integer, .real, .date: 32
        case .string(let text): 32 + text.utf8Count
        case .data(let bytes): 32 + bytes.count
        case .array(let values): values.reduce(32) { $0 + $1.rowSize }
        case .dictionary(let values): values.reduce(32) { $0 + 16 + $1.key.utf8Count + $1.value.rowSize }
        }
    }
}
