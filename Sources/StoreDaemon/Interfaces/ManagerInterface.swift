// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore.Manager: the service itself.

internal import AppManifest
internal import Glibc
internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension Daemon {
    // MARK: Stores

    fileprivate func openStore(_ call: MethodCall) throws {
        let name = try call.message.readString(atMost: TextBound.name)
        _ = try call.message.readOptions()
        let client = clients.client(call.peer)
        guard client.identity.engine != .unknown else {
            throw BusError.store(
                .identityUnknown, "The service can't tell what sandbox the caller is in, and opens no store for it.")
        }
        let user = try users.user(client.uid)
        let identifier = name.isEmpty ? try defaultIdentifier(of: client, user) : name
        let path = try entitledPath(identifier, client, user)
        guard let store = try clients.store(at: path, for: call.peer) else {
            throw notEntitled(identifier, client, user)
        }
        try call.reply { reply in
            try reply.append(objectPath: path)
            try reply.appendDictionary {
                try reply.append(entry: "identifier", .string(Text(identifier)))
                try reply.append(
                    entry: "initial-sync-done",
                    .boolean(store.store.isDownloaded && user.account.sync.isSignedIn))
                try reply.append(entry: "synchronized", .boolean(store.store.isSynchronized))
            }
        }
    }

    private func entitledPath(_ identifier: String, _ client: Client, _ user: User) throws -> String {
        // A package's script may open the store of a manifest that it has just installed.
        if !user.manifests.isEntitled(client.identity, to: identifier) { manifests.readIfChanged() }
        guard user.manifests.isEntitled(client.identity, to: identifier) else {
            logUndeclared(identifier, user)
            throw notEntitled(identifier, client, user)
        }
        return try BusNames.storePath(uid: user.uid, identifier: identifier)
    }

    private func notEntitled(_ identifier: String, _ client: Client, _ user: User) -> BusError {
        if let sources = user.manifests.installed.disputed[identifier], client.identity.engine == .host {
            return .store(
                .notEntitled,
                """
                The identifier "\(identifier)" is declared by apps that share neither their team nor their \
                application-identifier, so none of them gets it. Their manifests are \(sources.joined(separator: ", ")).
                """)
        }
        let near = user.manifests.entitled(client.identity).filter { Manifest.isNear($0, identifier) }.prefix(3)
        let hint =
            near.isEmpty
            ? "Install one, or open the identifier that the app's manifest declares."
            : "Did you mean \(near.map { "\"\($0)\"" }.joined(separator: " or "))?"
        return .store(
            .notEntitled, "No installed manifest declares the identifier \"\(identifier)\" for this caller. \(hint)")
    }

    /// Logs that a store can't be opened, once for each user and identifier.
    private func logUndeclared(_ identifier: String, _ user: User) {
        guard Manifest.isName(identifier), service.noteUndeclared(identifier, of: user.uid) else { return }
        logger.notice(
            """
            The user \(user.uid) asked for the store \(identifier), which no manifest declares for the caller: install a \
            manifest in /usr/share/ubiquitous-store/manifests.d, or see "ubiquitousctl manifest check".
            """)
    }

    private func defaultIdentifier(of client: Client, _ user: User) throws -> String {
        let identifiers = user.manifests.ownIdentifiers(of: client.identity)
        guard let identifier = identifiers.first, identifiers.count == 1 else {
            throw BusError.store(
                .ambiguousIdentity,
                identifiers.isEmpty
                    ? "The service can't tell which app the caller is; name the store's identifier."
                    : "The caller's app declares several stores; name the identifier of one.")
        }
        return identifier
    }

    fileprivate func listStores(_ call: MethodCall) throws {
        let flags = try call.message.readFlags(0x3)
        let (everybody, onlyExcluded) = (flags & 0x1 != 0, flags & 0x2 != 0)
        let client = clients.client(call.peer)
        guard !everybody || client.isRoot else {
            throw BusError.accessDenied("Only root may do this.")
        }
        let uids = everybody ? users.known : [client.uid]
        var list = StoreList()
        for uid in uids {
            let stores: [String]
            do {
                let user = try users.user(uid)
                let all = try onlyExcluded ? user.excludedStores() : user.storesWithValues()
                stores = try visible(all, of: user, to: client)
            } catch let error where everybody {
                // Root learns of all others' stores.
                logger.error(
                    "The data of \(UserName.text(of: uid)) can't be opened: \(BusError(mapping: error).message)")
                continue
            }
            for identifier in stores { try list.add(identifier, of: uid) }
        }
        try call.reply { reply in
            try reply.container("a", "(uso)") {
                for entry in list.entries(atMost: Message.largestAnswer) {
                    try reply.container("r", "uso") {
                        try reply.append(entry.uid)
                        try reply.append(entry.identifier)
                        try reply.append(objectPath: entry.path)
                    }
                }
            }
        }
    }

    /// Returns those of a user's stores that a client may know of: of a sandboxed app only its own.
    private func visible(_ stores: [String], of user: User, to client: Client) throws -> [String] {
        switch client.identity.engine {
        case .host: return stores
        case .flatpak:
            let own = user.manifests.ownIdentifiers(of: client.identity)
            return stores.filter(own.contains)
        case .unknown: throw BusError.accessDenied("The service can't tell what sandbox the caller is in.")
        }
    }

    fileprivate func listUsers(_ call: MethodCall) throws {
        _ = try call.message.readFlags()
        let uids = users.known
        try call.reply { reply in
            try reply.container("a", "(uo)") {
                for uid in uids {
                    try reply.container("r", "uo") {
                        try reply.append(uid)
                        try reply.append(objectPath: BusNames.accountPath(uid: uid))
                    }
                }
            }
        }
    }

    fileprivate func removeStore(_ call: MethodCall) throws {
        let identifier = try call.message.readString(atMost: TextBound.name)
        let flags = try call.message.readFlags(0xF)
        let (isEverywhere, discardsChanges, isCheck) = (flags & 0x1 != 0, flags & 0x2 != 0, flags & 0x4 != 0)
        let keepsPending = flags & 0x8 != 0
        let user = try users.user(clients.client(call.peer).uid)
        if !isEverywhere { try user.account.move.checkIsOver() }
        let keys = try user.recovery.retrying { () -> [Key]? in
            if isEverywhere { return try user.removeEverywhere(identifier, onlyChecking: isCheck) }
            if keepsPending { try user.checkHasUploaded(identifier) }
            if !discardsChanges { try user.checkAccountsHaveChanges(of: identifier) }
            if isCheck { return try user.storeIdentifiers().contains(identifier) ? [] : nil }
            return try user.forget(identifier)
        }
        guard let keys else {
            throw BusError.store(.noSuchStore, "Nothing is stored under the identifier \"\(identifier)\".")
        }
        if !keys.isEmpty {
            user.storeInUse(identifier)?.notify(.localChange, keys: keys, except: clients.client(call.peer))
        }
        try call.reply()
    }

    // MARK: Callers

    fileprivate func identify(_ call: MethodCall) throws {
        let client = clients.client(call.peer)
        let user = try users.user(client.uid)
        let defaults = user.manifests.ownIdentifiers(of: client.identity)
        try call.reply { reply in
            try reply.appendDictionary {
                try reply.container("e", "sv") {
                    try reply.append("uid")
                    try reply.container("v", "u") { try reply.append(client.uid) }
                }
                try reply.append(entry: "engine", .string(Text(client.identity.engine.rawValue)))
                try reply.append(entry: "app-id", .string(Text(client.identity.applicationIdentifier)))
                try reply.append(
                    entry: "default-identifier", .string(Text(defaults.count == 1 ? defaults[0] : "")))
                try reply.append("entitled", strings: user.manifests.entitled(client.identity))
                if user.manifests.allowsUndeclared, client.identity.engine == .host {
                    try reply.append(entry: "undeclared", .boolean(true))
                }
                // Sandboxed apps don't learn about the machine's folders.
                if client.identity.engine == .host {
                    try reply.append("folder-roots", strings: configuration.allowedFolders)
                }
            }
        }
    }

    fileprivate func registerManifest(_ call: MethodCall) throws {
        let bytes = try call.message.readBytes(
            atMost: Manifest.maximumSize,
            orThrow: .limitsExceeded("A manifest may have at most \(Manifest.maximumSize) bytes."))
        _ = try call.message.readOptions()
        let user = try users.user(clients.client(call.peer).uid)
        let manifest: Manifest
        do { manifest = try Manifest(propertyList: bytes) } catch {
            throw BusError.invalidArguments("The manifest is refused: \(error).")
        }
        if let identifier = manifest.identifier, manifests.manifests.declares(identifier) {
            throw BusError.store(
                .notEntitled, "The identifier \"\(identifier)\" is declared by an installed manifest.")
        }
        call.answer(on: self, holding: user.account) {
            try await user.register(manifest, bytes)
        } reply: { reply, _ in
            try reply.append(strings: manifest.identifier.map { [$0] } ?? [])
        }
    }

    fileprivate func reload(_ call: MethodCall) throws {
        try reload()
        try call.reply()
    }

    // MARK: The table

    /// Every method and property of the interface, in the order of its XML.
    static func interface(_ daemon: Daemon) -> Interface<Daemon> {
        Interface(
            BusNames.managerInterface,
            [
                .method(
                    "OpenStore", in: ["identifier": "s", "options": "a{sv}"], out: ["store": "o", "info": "a{sv}"],
                    by: .everybody, on: daemon
                ) { try $0.openStore($1) },
                .method("ListStores", in: ["flags": "t"], out: ["stores": "a(uso)"], by: .everybody, on: daemon) {
                    try $0.listStores($1)
                },
                .method("ListUsers", in: ["flags": "t"], out: ["users": "a(uo)"], by: .root, on: daemon) {
                    try $0.listUsers($1)
                },
                .method("RemoveStore", in: ["identifier": "s", "flags": "t"], by: .unsandboxed, on: daemon) {
                    try $0.removeStore($1)
                },
                .method("Identify", out: ["identity": "a{sv}"], by: .everybody, on: daemon) { try $0.identify($1) },
                .method(
                    "RegisterManifest", in: ["plist": "ay", "options": "a{sv}"], out: ["identifiers": "as"],
                    by: .unsandboxed, on: daemon
                ) { try $0.registerManifest($1) },
                .method("Reload", by: .administrators, on: daemon) { try $0.reload($1) },
                .property("Version", "s", changes: .never, to: .everybody, on: daemon) { daemon, message in
                    try message.append(daemon.configuration.version)
                },
                .property("Features", "as", changes: .never, to: .everybody, on: daemon) { daemon, message in
                    try message.append(strings: daemon.features)
                },
                .property("SettingsErrors", "as", changes: .silently, to: .unsandboxed, on: daemon) { daemon, message in
                    try message.append(texts: daemon.configuration.settingsErrors)
                },
                .property("Warnings", "as", changes: .silently, to: .unsandboxed, on: daemon) { daemon, message in
                    try message.append(texts: daemon.warnings)
                },
                .property("Limits", "a{st}", changes: .never, to: .everybody, on: daemon) { daemon, message in
                    try message.append(daemon.configuration.limits)
                },
            ])
    }
}

extension Message {
    /// Appends an entry of a dictionary: an array of strings, which is one of strings even if it is empty.
    fileprivate func append(_ name: String, strings: [String]) throws {
        try container("e", "sv") {
            try append(name)
            try container("v", "as") { try append(strings: strings) }
        }
    }
}
