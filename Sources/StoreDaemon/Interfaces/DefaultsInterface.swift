// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore.Defaults: one user's defaults domains.

internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserDomains {
    /// The most bytes of values in an answer of ``openDomains(_:_:)``, which may have 16 MiB with names and paths.
    private static let largestAnswer = (16 << 20) - (64 << 10)
    /// The most domains that a call opens. The client holds the layers of each.
    private static let mostDomains = 24

    fileprivate func openDomains(_ call: MethodCall, _ daemon: Daemon) throws {
        let names = try call.message.readStrings(bytes: TextBound.name)
        let options = try call.message.readOptions(["program": "s", "subscribe": "b"])
        guard names.count <= Self.mostDomains else {
            throw BusError.invalidArguments("A call can open \(Self.mostDomains) domains at most. Make several calls.")
        }
        let client = daemon.clients.client(call.peer)
        var program = try options.string("program").map { try self.program($0, for: client.identity) }
        // For a sandboxed app, any path means the app.
        if program == nil, client.identity.engine == .flatpak {
            program = try? self.program("", for: client.identity)
        }
        let subscribes = options.boolean("subscribe", default: false)
        call.answer(on: daemon) { [self] in
            try await openings.inTurn { [self] in
                // A large domain with its history takes long to load, so others are served before the next one. Nothing
                // but the layers is kept from here: manifests and managed settings may change meanwhile.
                let slices = Slices(of: .user(client.uid))
                let held = HeldLayers()
                for name in names {
                    if let layers = try layers(of: name, program, call.peer, daemon) { held.add(layers) }
                    await slices.pauseIfDue()
                }
                return held
            }
        } reply: { [self] reply, held in
            let domains = try names.compactMap { try open($0, program, call.peer, daemon, holding: held) }
            if subscribes { try subscribe(call.peer, to: domains, daemon) }
            var room = Self.largestAnswer
            try reply.container("a", "a{sv}") {
                for domain in domains {
                    let isOmitted = domain.weight > room
                    if !isOmitted { room -= domain.weight }
                    try reply.appendDictionary { try append(domain, to: reply, isOmitted: isOmitted) }
                }
            }
        }
    }

    /// The layers that a call opens. All are in memory at once, and count against the user's share of it.
    @BusActor
    private final class HeldLayers {
        private var layers: [UserStore] = []

        isolated deinit {
            for layer in layers { layer.release() }
        }

        func add(_ domain: DomainLayers) {
            for layer in [domain.values, domain.host] {
                layer.hold()
                layers.append(layer)
            }
        }
    }

    /// The layers of a domain, and the caller's access to it.
    private typealias DomainLayers = (domain: String, access: DomainAccess, values: UserStore, host: UserStore)

    /// A domain that a call has opened.
    private struct Opened {
        let name: String
        let values: UserStore
        let host: UserStore
        let managed: ManagedDomain
        let isWritable: Bool
        let store: String

        @BusActor var weight: Int {
            values.weight + host.weight + managed.weight
        }
    }

    /// - Returns: `nil` if the domain does not exist for the caller.
    private func open(
        _ name: String, _ program: Program?, _ peer: Peer, _ daemon: Daemon, holding held: HeldLayers
    ) throws -> Opened? {
        guard let layers = try layers(of: name, program, peer, daemon) else { return nil }
        held.add(layers)
        let domain = layers.domain
        var managed = managed(domain, for: peer)
        let isOwn = domain == program?.domain
        if isOwn { managed.ubiquitous = managed.ubiquitous ?? program?.ubiquitous }
        return Opened(
            name: domain, values: layers.values, host: layers.host, managed: managed,
            isWritable: layers.access == .write, store: isOwn ? program?.store ?? "" : "")
    }

    /// - Returns: `nil` if the domain does not exist for the caller.
    private func layers(
        of name: String, _ program: Program?, _ peer: Peer, _ daemon: Daemon
    ) throws -> DomainLayers? {
        let domain = try resolve(name, program)
        let access = access(of: daemon.clients.client(peer).identity, to: domain)
        guard access != .none else { return nil }
        let path = try BusNames.domainPath(uid: user.uid, domain: domain)
        guard let values = try daemon.clients.layer(at: path, for: peer) else { return nil }
        values.hold()
        defer { values.release() }
        guard let host = try daemon.clients.layer(at: path + BusNames.hostSuffix, for: peer) else { return nil }
        return (domain, access, values, host)
    }

    /// Subscribes to all of the domains, or to none.
    private func subscribe(_ peer: Peer, to domains: [Opened], _ daemon: Daemon) throws {
        let client = daemon.clients.client(peer)
        let paths = domains.filter { !$0.values.isSubscribed(client, at: $0.values.path) }.map(\.values.path)
        try daemon.clients.checkDomainSubscriptions(of: client, adding: Set(paths).count)
        for domain in domains {
            try domain.values.subscribe(peer, alsoTo: domain.host, at: domain.values.path, daemon)
        }
    }

    /// Returns the domain that a name means. "" means the program's own.
    private func resolve(_ name: String, _ program: Program?) throws(BusError) -> String {
        if name.isEmpty {
            guard let program else { throw .invalidArguments("\"\" is a program's own domain; name the program, too.") }
            return program.domain
        }
        if let problem = DomainName.problem(name) { throw .invalidArguments("The domain can't be opened: \(problem).") }
        return name
    }

    private func append(_ domain: Opened, to reply: Message, isOmitted: Bool) throws {
        try reply.append(entry: "domain", .string(Text(domain.name)))
        try reply.append(option: "path", objectPath: domain.values.path)
        try reply.append(entry: "writable", .boolean(domain.isWritable))
        try reply.append(entry: "store", .string(Text(domain.store)))
        try reply.append(option: "generation", domain.values.store.generation)
        try reply.append(option: "host-generation", domain.host.store.generation)
        if isOmitted { return try reply.append(entry: "omitted", .boolean(true)) }
        try reply.append(values: "values", of: domain.values.store)
        try reply.append(values: "host-values", of: domain.host.store)
        try reply.append(name: "managed") { try reply.append(managed: domain.managed) }
    }

    fileprivate func listDomains(_ call: MethodCall, _ daemon: Daemon) throws {
        let includesManaged = try call.message.readFlags(0x1) != 0
        let client = daemon.clients.client(call.peer)
        var names = Set(try self.names().map { Text($0) })
        if includesManaged { names.formUnion(managedNames(for: call.peer).map { Text($0) }) }
        let access = user.manifests.access(of: client.identity)
        let visible = names.sorted().map(\.string).filter { access($0) != .none }
        try call.reply { try $0.append(strings: visible) }
    }

    fileprivate func removeDomain(_ call: MethodCall, _ daemon: Daemon) throws {
        let domain = try call.message.readString(atMost: TextBound.name)
        let flags = try call.message.readFlags(0x1)
        let client = daemon.clients.client(call.peer)
        if let problem = DomainName.problem(domain) {
            throw BusError.invalidArguments("There is no such domain: \(problem).")
        }
        guard access(of: client.identity, to: domain) == .write else {
            throw BusError.accessDenied("The domain is not the caller's to remove.")
        }
        var layers: [UserStore] = []
        defer { for layer in layers { layer.release() } }
        for isHost in flags == 0 ? [false] : [false, true] {
            layers.append(try user.store(DomainLayer(of: domain, isHost: isHost).identifier))
            layers.last?.hold()
        }
        let changes = try layers.map { ($0, try $0.store.stage(setting: [], removing: Array($0.store.values.keys))) }
        do { try user.database.commit() } catch {
            for layer in layers { layer.forgetWeight() }
            throw error
        }
        for (layer, keys) in changes where !keys.isEmpty {
            layer.noteStaged(weight: 0)
            layer.notify(.localChange, keys: keys, except: client)
        }
        try call.reply()
    }

    // MARK: The table

    /// Every method and property of the interface, in the order of its XML.
    static func interface(_ daemon: Daemon) -> Interface<UserDomains> {
        Interface(
            BusNames.defaultsInterface,
            [
                .method(
                    "OpenDomains", in: ["domains": "as", "options": "a{sv}"], out: ["opened": "aa{sv}"], by: .everybody,
                    on: daemon
                ) {
                    try $0.openDomains($1, daemon)
                },
                .method("ListDomains", in: ["flags": "t"], out: ["domains": "as"], by: .everybody, on: daemon) {
                    try $0.listDomains($1, daemon)
                },
                .method("RemoveDomain", in: ["domain": "s", "flags": "t"], by: .everybody, on: daemon) {
                    try $0.removeDomain($1, daemon)
                },
                .property("Limits", "a{st}", changes: .never, to: .everybody, on: daemon) { domains, message in
                    try message.append(domains.user.database.layerLimits)
                },
            ])
    }
}

extension ManagedDomain {
    /// The most bytes that it takes in a message.
    fileprivate var weight: Int {
        let values = [forced, recommended].joined().reduce(0) { $0 + Value.entrySize($1.key, $1.value) }
        let patterns = (locked.patterns + (ubiquitous?.patterns ?? [])).reduce(0) { $0 + 8 + $1.utf8Count }
        return sources.reduce(values + patterns) { $0 + 24 + $1.key.utf8Count + $1.value.utf8.count }
    }
}

extension Message {
    /// Writes an entry of an `a{sv}` whose value is an `a{sv}` that `body` writes.
    func append(name: String, _ body: () throws -> Void) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "a{sv}") { try appendDictionary(body) }
        }
    }

    /// Writes all of a store's visible values as such an entry.
    fileprivate func append(values name: String, of store: Store) throws {
        try append(name: name) {
            try store.forEachValue { try append(entry: $0.string, $1) }
        }
    }

    fileprivate func append(option name: String, objectPath path: String) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "o") { try append(objectPath: path) }
        }
    }

    private func append(patterns name: String, _ patterns: KeyPatterns) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "as") { try append(strings: patterns.patterns.map(\.string)) }
        }
    }

    private func append(paths name: String, _ paths: [Text: String]) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "a{ss}") {
                try container("a", "{ss}") {
                    for (key, path) in paths {
                        try container("e", "ss") {
                            try append(key.string)
                            try append(text: path)
                        }
                    }
                }
            }
        }
    }

    /// Writes the entries of managed settings.
    func append(managed: ManagedDomain) throws {
        for (name, values) in [("forced", managed.forced), ("recommended", managed.recommended)] {
            try append(name: name) {
                for (key, value) in values { try append(entry: key.string, value) }
            }
        }
        try append(patterns: "locked", managed.locked)
        if let ubiquitous = managed.ubiquitous { try append(patterns: "ubiquitous", ubiquitous) }
        try append(paths: "sources", managed.sources)
        try append(paths: "recommended-sources", managed.recommendedSources)
    }
}
