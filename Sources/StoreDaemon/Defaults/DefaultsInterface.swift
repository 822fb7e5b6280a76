// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore.Defaults: one user's defaults domains.

internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension UserDomains {
    /// The most bytes of values in an answer of ``openDomains(_:)``, which may have 16 MiB with names and paths.
    private static let largestAnswer = (16 << 20) - (64 << 10)
    /// The most domains that a call opens. The client holds the layers of each.
    private static let mostDomains = 24

    fileprivate func openDomains(_ call: MethodCall) throws {
        let names = try call.message.readStrings(bytes: TextBound.name)
        let options = try call.message.readOptions(["program": "s", "subscribe": "b"])
        guard names.count <= Self.mostDomains else {
            throw BusError.invalidArguments("A call can open \(Self.mostDomains) domains at most. Make several calls.")
        }
        let client = daemon.clients.client(call.peer)
        let opening = Opening(
            program: try options.string("program").map { try self.program($0, for: client.identity) }, peer: call.peer,
            isSubscribing: options.boolean("subscribe", default: false), names: names[...])
        // Usually a rest isn't necessary, and the answer is sent at once.
        try open(opening, until: client.share.rest)
        if opening.names.isEmpty { return try call.reply { try self.append(opening.opened, to: $0) } }
        call.answer(on: daemon) {
            while !opening.names.isEmpty {
                let rest = client.share.rest
                await rest.over()
                let work = WorkTime()
                try self.open(opening, until: rest)
                // Most of the time is the database's, which is charged already.
                if !rest.isUnderWay { rest.note(work.taken(ifAtLeast: LongCallPause.shortest)) }
            }
            // The answer has only what is committed.
            self.daemon.writes.commit()
        } reply: { reply, _ in
            try self.append(opening.opened, to: reply)
        }
    }

    /// What a call opens, one domain after the other: to load one may take long.
    @BusActor
    private final class Opening {
        let program: Program?
        let peer: Peer
        let isSubscribing: Bool
        /// The domains that are still to be opened.
        var names: ArraySlice<String>
        var opened: [Opened] = []
        /// The bytes that are left for values in the answer.
        var room = UserDomains.largestAnswer

        init(program: Program?, peer: Peer, isSubscribing: Bool, names: ArraySlice<String>) {
            (self.program, self.peer, self.isSubscribing, self.names) = (program, peer, isSubscribing, names)
        }
    }

    /// A domain that a call has opened.
    private struct Opened {
        let name: String
        let path: String
        let generation: UInt64
        let hostGeneration: UInt64
        let isWritable: Bool
        let store: String
        /// What it holds; `nil` if the answer has no room for that.
        let content: (values: UserStore, host: UserStore, managed: ManagedDomain)?
    }

    /// Opens domains until all are open or the user has to rest.
    private func open(_ opening: Opening, until rest: LongCallPause) throws {
        let work = WorkTime()
        while let name = opening.names.popFirst() {
            if let domain = try open(name, opening) { opening.opened.append(domain) }
            if rest.isUnderWay || work.taken(ifAtLeast: LongCallPause.allowance) > 0 { return }
        }
    }

    /// - Returns: `nil` if the domain does not exist for the caller.
    private func open(_ name: String, _ opening: Opening) throws -> Opened? {
        let (peer, program) = (opening.peer, opening.program)
        let client = daemon.clients.client(peer)
        let domain = try resolve(name, program)
        let access = access(of: client.identity, to: domain)
        guard access != .none else { return nil }
        let path = try BusNames.domainPath(uid: user.uid, domain: domain)
        guard let values = try daemon.clients.layer(at: path, for: peer),
            let host = try daemon.clients.layer(at: path + BusNames.hostSuffix, for: peer)
        else { return nil }
        if opening.isSubscribing { try values.subscribe(peer, alsoTo: host, at: path, daemon) }
        var managed = managed(domain, for: peer)
        let isOwn = domain == program?.domain
        if isOwn { managed.ubiquitous = managed.ubiquitous ?? program?.ubiquitous }
        let weight = values.weight + host.weight + managed.weight
        let fits = weight <= opening.room
        if fits { opening.room -= weight }
        return Opened(
            name: domain, path: values.path, generation: values.store.generation,
            hostGeneration: host.store.generation, isWritable: access == .write,
            store: isOwn ? program?.store ?? "" : "", content: fits ? (values, host, managed) : nil)
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

    private func append(_ opened: [Opened], to reply: Message) throws {
        try reply.container("a", "a{sv}") {
            for domain in opened { try reply.appendDictionary { try append(domain, to: reply) } }
        }
    }

    private func append(_ domain: Opened, to reply: Message) throws {
        try reply.append(entry: "domain", .string(Text(domain.name)))
        try reply.append(option: "path", objectPath: domain.path)
        try reply.append(entry: "writable", .boolean(domain.isWritable))
        try reply.append(entry: "store", .string(Text(domain.store)))
        let generation = domain.content?.values.store.generation ?? domain.generation
        let hostGeneration = domain.content?.host.store.generation ?? domain.hostGeneration
        try reply.append(option: "generation", generation)
        try reply.append(option: "host-generation", hostGeneration)
        guard let (values, host, managed) = domain.content else {
            return try reply.append(entry: "omitted", .boolean(true))
        }
        try reply.append(values: "values", of: values.store)
        try reply.append(values: "host-values", of: host.store)
        try reply.append(name: "managed") { try reply.append(managed: managed) }
    }

    fileprivate func listDomains(_ call: MethodCall) throws {
        let includesManaged = try call.message.readFlags(0x1) != 0
        let client = daemon.clients.client(call.peer)
        var names = Set(try self.names().map { Text($0) })
        if includesManaged { names.formUnion(managedNames(for: call.peer).map { Text($0) }) }
        let visible = names.sorted().map(\.string).filter { access(of: client.identity, to: $0) != .none }
        try call.reply { try $0.append(strings: visible) }
    }

    fileprivate func removeDomain(_ call: MethodCall) throws {
        let domain = try call.message.readString(atMost: TextBound.name)
        let flags = try call.message.readFlags(0x1)
        let client = daemon.clients.client(call.peer)
        if let problem = DomainName.problem(domain) {
            throw BusError.invalidArguments("There is no such domain: \(problem).")
        }
        guard access(of: client.identity, to: domain) == .write else {
            throw BusError.accessDenied("The domain is not the caller's to remove.")
        }
        let layers = try (flags == 0 ? [false] : [false, true]).map { isHost in
            try user.store(Store.layerIdentifier(ofDomain: domain, isHost: isHost))
        }
        for layer in layers { layer.hold() }
        defer { for layer in layers { layer.release() } }
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
                    "OpenDomains", in: ["domains": "as", "options": "a{sv}"], out: ["opened": "aa{sv}"], on: daemon
                ) {
                    try $0.openDomains($1)
                },
                .method("ListDomains", in: ["flags": "t"], out: ["domains": "as"], on: daemon) {
                    try $0.listDomains($1)
                },
                .method("RemoveDomain", in: ["domain": "s", "flags": "t"], on: daemon) { try $0.removeDomain($1) },
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

    /// Writes the entries of managed settings.
    func append(managed: ManagedDomain) throws {
        for (name, values) in [("forced", managed.forced), ("recommended", managed.recommended)] {
            try append(name: name) {
                for (key, value) in values { try append(entry: key.string, value) }
            }
        }
        try append(patterns: "locked", managed.locked)
        if let ubiquitous = managed.ubiquitous { try append(patterns: "ubiquitous", ubiquitous) }
        try container("e", "sv") {
            try append("sources")
            try container("v", "a{ss}") {
                try container("a", "{ss}") {
                    for (key, path) in managed.sources {
                        try container("e", "ss") {
                            try append(key.string)
                            try append(text: path)
                        }
                    }
                }
            }
        }
    }
}
