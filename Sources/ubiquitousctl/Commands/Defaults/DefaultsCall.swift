// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import DefaultsDomains
internal import Glibc
internal import ManagedDefaults
internal import PropertyList
internal import PropertyListFiles
internal import SDBus
internal import UbiquitousStore

/// Carries out a call of `defaults`.
@BusActor
struct DefaultsCall {
    /// How values are printed.
    enum Form {
        /// One word, as in the rest of this program.
        case word
        case json
        /// Old-style text, as macOS's program prints it.
        case oldStyle
    }

    let connection: ServiceConnection
    let uid: UInt32
    let words: DefaultsWords
    let form: Form
    let isCheck: Bool
    /// Whether `read` and `read-type` print what programs get, and not one layer.
    var isEffective = false
    /// Whether the bus is that of the user's programs, whose outboxes are for the service there.
    var isProgramsBus = true

    func run() async throws {
        if !isCheck { await deliverOutboxes() }
        switch words.verb {
        case .read: try await read()
        case .readType: try await readType()
        case .write: try await write()
        case .rename: try await rename()
        case .delete: try await delete()
        case .deleteAll: try await deleteAll()
        case .importing: try await importFile()
        case .export: try await exportFile()
        case .domains: try await listDomains()
        case .find: try await find()
        case .explain: try await explain()
        case .history: try await history()
        case .watch:
            let key = words.rest.first.map { Text($0) }
            let watch = DomainWatch(connection, place(try domain), key: key, form: form)
            // Its handlers refer to it weakly.
            defer { extendLifetime(watch) }
            try await watch.run()
        case .help, .managed: break
        }
    }

    /// Delivers what the user's programs set while there was no service, so that this call sees it.
    private func deliverOutboxes() async {
        guard isProgramsBus, uid == geteuid(), let domain = words.domain else { return }
        let outboxes = Outboxes(directory: OutboxFile.standardDirectory())
        let end = EventLoop.now + 2_000_000
        for name in [domain, DefaultsWords.globalDomain] {
            await OutboxDelivery(domain: name, from: outboxes, over: connection).run(waitingUntil: end)
        }
    }

    // MARK: Places

    private func place(_ domain: Text, isHost: Bool? = nil) -> LayerAddress {
        LayerAddress(domain, isHost: isHost ?? words.isCurrentHost, uid: uid)
    }

    private var domain: Text {
        get throws {
            guard let domain = words.domain else { throw DefaultsWords.usage("The domain is missing") }
            return domain
        }
    }

    private func values() async throws -> [Text: Value] {
        if isEffective { return try await search().list.found.mapValues(\.value) }
        return try await connection.snapshot(place(domain)).values
    }

    private func key(at index: Int = 0) throws -> Text {
        guard words.rest.count > index else { throw DefaultsWords.usage("The key is missing") }
        return Text(words.rest[index])
    }

    private func value() async throws -> Value {
        let (domain, key) = (try domain, try key())
        guard let value = try await values()[key] else { throw absent(domain, key) }
        return value
    }

    private func absent(_ domain: Text, _ key: Text? = nil) -> Failure {
        let domain = Output.shortened(domain.string)
        guard let key = key.map({ Output.shortened($0.string) }) else {
            return Failure(.absent, "Domain \(domain) does not exist")
        }
        return Failure(.absent, "The domain/default pair of (\(domain), \(key)) does not exist")
    }

    private func print(_ value: Value) {
        switch form {
        case .word: Output.print(ValueText.word(value))
        case .json: Output.print(json: value)
        case .oldStyle: Output.print(OldStyleText.text(value))
        }
    }

    // MARK: Reading

    private func read() async throws {
        guard let domain = words.domain else { return try await readEverything() }
        if !words.rest.isEmpty { return print(try await value()) }
        let values = try await values()
        if form == .json || !values.isEmpty { print(.dictionary(values)) }
        if values.isEmpty { throw absent(domain) }
    }

    private func readType() async throws {
        let name = try await value().defaultsTypeName
        if form == .json { return Output.print(json: .string(Text(name))) }
        Output.print("Type is \(name)")
    }

    private func readEverything() async throws {
        var everything: [Text: Value] = [:]
        for name in try await connection.domains(ofUser: uid) {
            let values = try await connection.snapshot(place(Text(name))).values
            if !values.isEmpty { everything[Text(name)] = .dictionary(values) }
        }
        print(.dictionary(everything))
    }

    private func listDomains() async throws {
        let names = try await connection.domains(ofUser: uid)
        if form == .oldStyle { return Output.print(names.joined(separator: ", ")) }
        if form == .json { return Output.print(json: .array(names.map { .string(Text($0)) })) }
        for name in names { Output.print(Output.printableWord(name)) }
    }

    private func find() async throws {
        guard let word = words.rest.first else { throw DefaultsWords.usage("The word is missing") }
        var found: [Text: Value] = [:]
        for name in try await connection.domains(ofUser: uid) {
            let values = try await connection.snapshot(place(Text(name))).values
            let fits = values.filter { key, value in
                name.contains(word) || key.string.contains(word) || OldStyleText.text(value).contains(word)
            }
            if fits.isEmpty { continue }
            found[Text(name)] = .dictionary(fits)
            if form == .json { continue }
            Output.print("Found \(fits.count) keys in domain '\(name)': \(OldStyleText.text(.dictionary(fits)))")
        }
        if form == .json { Output.print(json: .dictionary(found)) }
        if found.isEmpty { throw Failure(.absent, "No domain, key, nor value containing '\(word)'") }
    }

    /// Returns what programs search for a domain's keys, and its managed settings. Arguments and registered
    /// values are known only to programs.
    private func search() async throws -> (list: SearchList, managed: [Text: ManagedDomain]) {
        var (list, all) = (SearchList(own: try domain), [Text: ManagedDomain]())
        for name in list.domains {
            let managed = try await connection.managed(place(name, isHost: false))
            all[name] = managed
            _ = list.replace(.forced(name), by: managed.forced)
            _ = list.replace(.recommended(name), by: managed.recommended)
            _ = list.lock(name, managed.locked)
            if name == list.own, let (store, keys) = roaming(managed), let values = try await storedValues(store) {
                _ = list.replace(.ubiquitous, by: values.filter { keys.contains($0.key) })
            }
            for layer in [SearchList.Layer.host(name), .domain(name)] {
                let place = place(name, isHost: layer == .host(name))
                _ = list.replace(layer, by: try await connection.snapshot(place).values)
            }
        }
        return (list, all)
    }

    /// Returns a store's values; `nil` if there is no such store.
    private func storedValues(_ store: String) async throws -> [Text: Value]? {
        do { return try await connection.store(store, ofUser: uid).snapshot().values } catch let error
            as UbiquitousStoreError where [.noSuchStore, .unknownObject, .notEntitled].contains(error.code)
        { return nil }
    }

    /// Prints the key's value in each layer of the service.
    private func explain() async throws {
        let (domain, key) = (try domain, try key())
        let (list, managed) = try await search()
        let shown = list.all(key)
        let lines = (shown + list.hidden(key)).enumerated().map { index, found in
            let file = found.layer.source(of: key) { managed[$0] }
            return (layer: found.layer.words, value: found.value, file: file, isHidden: index >= shown.count)
        }
        if list.isLocked(key) { Output.remark("The key is locked by an administrator") }
        if let managed = managed[domain] { remarkOnRoaming([key], managed) }
        if form == .json {
            let layers = lines.map { line in
                var entry: [Text: Value] = ["layer": .string(Text(line.layer)), "value": line.value]
                entry["file"] = line.file.map { .string(Text($0)) }
                if line.isHidden { entry["hidden"] = .boolean(true) }
                return Value.dictionary(entry)
            }
            Output.print(json: .array(layers))
        }
        if lines.isEmpty { throw absent(domain, key) }
        if form == .json { return }
        for line in lines {
            let remark = line.isHidden ? "hidden by the lock" : line.file
            Output.print("\(line.layer): \(ValueText.word(line.value))" + (remark.map { " (\($0))" } ?? ""))
        }
    }

    private func history() async throws {
        let (domain, key) = (try domain, try key())
        let entries = try await connection.history(key.string, place(domain))
        if entries.isEmpty { throw Failure(.absent, "No earlier value of (\(domain), \(key)) is kept") }
        for entry in entries { if let value = entry["value"] { print(value) } }
    }

    private func exportFile() async throws {
        guard let file = words.rest.first else {
            throw DefaultsWords.usage("The file is missing; - is standard output")
        }
        let values = try await values()
        if values.isEmpty { throw absent(try domain) }
        // As on macOS: XML to standard output, binary to a file.
        do {
            let bytes = try (file == "-" ? FileFormat.xml : .binary).write(.dictionary(values))
            file == "-" ? Output.write(bytes: bytes) : try WholeFile.replace(file, with: bytes)
        } catch let error as UnwritableText {
            throw Failure(.refused, "The domain can't be written as XML: \(error)")
        }
    }

    // MARK: Writing

    private func write() async throws {
        if words.rest.count == 1 {
            guard case .dictionary(let values) = try OldStyleText.value(words.rest[0]) else {
                throw DefaultsWords.usage(
                    "\"write\" takes a key and a value after the domain, or a dictionary, such as '{ size = 14; }'")
            }
            // defaults(1) of macOS: this "erases any previous defaults" of the domain.
            return try await replaceAll(by: values)
        }
        let (key, value) = (try key(), Array(words.rest.dropFirst()))
        try await change(guarded: DefaultsWords.isAddition(value)) {
            [key: try DefaultsWords.value(value, addingTo: $0[key])]
        }
    }

    private func rename() async throws {
        let (domain, old, new) = (try domain, try key(), try key(at: 1))
        try await change(guarded: true) { present in
            guard let value = present[old] else { throw absent(domain, old) }
            var changes: Changes = [old: .none]
            // A key that is renamed to itself stays.
            changes[new] = .some(value)
            return changes
        }
    }

    private func delete() async throws {
        guard !words.rest.isEmpty else { return try await deleteAll() }
        let (domain, key) = (try domain, try key())
        try await change { present in
            if present[key] == nil { try checkRemoval(absent(domain, key)) }
            return [key: .none]
        }
    }

    /// Throws a failure because there is nothing to remove, as macOS's program does. In this program's own form it is no
    /// failure: commands are idempotent.
    private func checkRemoval(_ failure: Failure) throws {
        if form == .oldStyle { throw failure }
    }

    private func deleteAll() async throws {
        let domain = try domain
        if !words.rest.isEmpty {
            var found = false
            for isHost in [false, true] {
                let present = try await connection.snapshot(place(domain, isHost: isHost)).values
                guard present[try key()] != nil else { continue }
                found = true
                if !isCheck { try await connection.apply([try key(): .none], to: place(domain, isHost: isHost)) }
            }
            if !found { try checkRemoval(absent(domain, try key())) }
            return report(found, "remove \(ValueText.word(key: try key()))")
        }
        var isThere = false
        for isHost in words.verb == .deleteAll ? [false, true] : [words.isCurrentHost] where !isThere {
            isThere = try await !connection.snapshot(place(domain, isHost: isHost)).values.isEmpty
        }
        let removal =
            "remove the \(words.isCurrentHost ? "values of this host in " : "")domain \(Output.printableWord(domain.string))"
        guard isThere else {
            try checkRemoval(absent(domain))
            return report(false, removal)
        }
        if isCheck { return report(true, removal) }
        if words.verb == .delete && words.isCurrentHost {
            try await connection.apply([:], to: place(domain), replacing: true)
        } else {
            try await connection.removeDomain(domain.string, includingHost: words.verb == .deleteAll, ofUser: uid)
        }
        report(true)
    }

    private func importFile() async throws {
        guard let file = words.rest.first else { throw DefaultsWords.usage("The file is missing; - is standard input") }
        let bytes = file == "-" ? try StandardInput.bytes() : try WholeFile.read(file)
        do {
            guard case .dictionary(let values) = try FileFormat(of: bytes).read(bytes) else {
                throw Failure(.usage, "The file holds no dictionary")
            }
            try await replaceAll(by: values)
        } catch let error as FileError {
            throw Failure(.usage, "The file can't be read: \(error)", advice: "Nothing was changed.")
        }
    }

    /// Replaces everything in the domain.
    private func replaceAll(by values: [Text: Value]) async throws {
        try await change(guarded: true) { present in
            let removed = present.keys.filter { values[$0] == nil }
            return Changes(removed.map { ($0, nil) }) { $1 }.merging(values.mapValues { $0 }) { $1 }
        }
    }

    /// Changes the domain.
    ///
    /// - Parameters:
    ///   - isGuarded: whether the changes depend on the present values; then a write meanwhile starts over.
    ///   - wanted: returns the changes, given the present values.
    private func change(guarded isGuarded: Bool = false, _ wanted: ([Text: Value]) throws -> Changes) async throws {
        // Each failed attempt means that another program's write succeeded.
        for _ in 0..<100 {
            do {
                return try await attempt(guarded: isGuarded, wanted)
            } catch let error as UbiquitousStoreError where isGuarded && error.code == .conflict { continue }
        }
        throw Failure(.refused, "Another program keeps changing the domain")
    }

    private func attempt(guarded isGuarded: Bool, _ wanted: ([Text: Value]) throws -> Changes) async throws {
        let place = place(try domain)
        let present = try await connection.snapshot(place)
        let changes = try wanted(present.values)
        let plan = Plan(changes, on: present.values)
        try plan.checkValues(.domain)
        let news = plan.changes
        if isCheck { return form == .json ? report(!news.isEmpty) : plan.printSteps() }
        if !news.isEmpty {
            try await connection.apply(news, to: place, ifGeneration: isGuarded ? present.generation : nil)
        }
        report(!news.isEmpty)
        // macOS's program doesn't print this.
        if form == .oldStyle { return }
        if !changes.isEmpty { try await remark(on: changes) }
    }

    /// Says as JSON whether something has changed or would change, and with `--check` in words.
    private func report(_ isChange: Bool, _ change: String? = nil) {
        if isChange, !isCheck { Output.noteChange() }
        if form == .json { return Output.print(json: ["changed": .boolean(isChange)]) }
        guard isCheck, let change else { return }
        Output.print(isChange ? "would \(change)" : "nothing would change")
    }

    /// Returns the store of the domain's keys that the user's devices share, and which keys these are; `nil` if there
    /// are none.
    /// - Parameter managed: what an administrator decides about the domain, who may name other keys than the manifest.
    private func roaming(_ managed: ManagedDomain) -> (store: String, keys: KeyPatterns)? {
        let directories = InstalledManifests.directories { uid == geteuid() ? Variable.value(of: $0) : nil }
        guard let domain = words.domain,
            let manifest = InstalledManifests.manifest(ofApp: domain.string, in: directories),
            let store = manifest.identifier
        else { return nil }
        return (store, managed.ubiquitous ?? KeyPatterns(manifest.ubiquitousDefaults.map { Text($0) }))
    }

    /// Remarks on keys whose values programs don't get from this domain, but from an administrator, or from the store that
    /// the user's devices share. The command leaves those alone.
    private func remark(on changes: Changes) async throws {
        let managed = try await connection.managed(place(domain, isHost: false))
        for (key, value) in changes.sorted(by: { $0.key < $1.key }) where value != nil {
            guard managed.forced[key] != nil || managed.locked.contains(key) else { continue }
            Output.remark(
                """
                Programs don't get this value of \(key.string): an administrator decides it; see "ubiquitousctl defaults \
                explain"
                """)
        }
        remarkOnRoaming(changes.keys.sorted(), managed)
    }

    private func remarkOnRoaming(_ keys: [Text], _ managed: ManagedDomain) {
        guard let (store, roaming) = roaming(managed) else { return }
        for key in keys where roaming.contains(key) {
            Output.remark("\(key.string) roams: where the store \(store) has its value, programs get that")
        }
    }
}

extension Value {
    /// The name of the value's type, as macOS's `read-type` prints it.
    fileprivate var defaultsTypeName: String {
        switch self {
        case .boolean: "boolean"
        case .integer: "integer"
        case .real: "float"
        case .string: "string"
        case .data: "data"
        case .date: "date"
        case .array: "array"
        case .dictionary: "dictionary"
        }
    }
}
