// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import DefaultsDomains
internal import PropertyList
internal import UbiquitousStore

/// `defaults`.
struct DefaultsCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "defaults",
        abstract: "Reads and writes programs' settings, with the verbs of macOS's defaults.",
        usage: """
            ubiquitousctl defaults [OPTIONS] [-currentHost] read [DOMAIN [KEY]]
            ubiquitousctl defaults [OPTIONS] [-currentHost] write DOMAIN KEY [TYPE] VALUE
            ubiquitousctl defaults [OPTIONS] [-currentHost] VERB ...
            """,
        discussion: """
            Options go before the verb. Verbs: read, read-type, write, rename, delete, delete-all, import, export, \
            domains, find, explain, history, watch; "managed check FILE" says whether a file of managed settings is right.

            A domain is a name, -g or -globalDomain, or -app NAME. Types: -string, -data, -int, -float, -bool, -date, \
            -array, -array-add, -dict, -dict-add. A running program sees the write at once.

            Exits with 1 if there is no such domain or value, unless it was to be deleted.
            """)

    @OptionGroup var service: ServiceOptions

    @Flag(help: "Print values as JSON.")
    var json = false

    @Flag(
        name: [.customLong("check"), .customLong("dry-run"), .customShort("n")],
        help: "Change nothing, and say what would change.")
    var check = false

    @Flag(name: .customLong("currentHost", withSingleDash: true), help: "Only the layer of this host.")
    var currentHost = false

    @Flag(help: "Read what programs get: forced values, both layers, the global domain, recommended values.")
    var effective = false

    @Argument(
        parsing: .captureForPassthrough, help: ArgumentHelp("The verb, and what it takes.", valueName: "words"),
        completion: .custom { arguments, index, _ in DefaultsCompletion.words(arguments, index) })
    var words: [String] = []

    static let options: Set = ["--json", "--check", "--dry-run", "-n", "--effective", "--bus", "--user"]

    /// The words that name domains, keys and files. An option among them is misplaced; a value may look like one.
    private var names: ArraySlice<String> {
        let names = words.dropFirst()
        return words.first == "write" ? names.prefix(names.first == "-app" ? 3 : 2) : names
    }

    func perform() async throws {
        if ["--help", "-h", "help"].contains(words.first ?? "help") || !names.filter(["--help", "-h"].contains).isEmpty
        {
            return Output.print(Self.helpMessage())
        }
        if let option = names.first(where: Self.options.contains) {
            throw DefaultsWords.usage("\(option) goes before the verb")
        }
        let call = try DefaultsWords((currentHost ? ["-currentHost"] : []) + words)
        if call.verb == .managed { return try ManagedCheck.run(call.rest, json: json) }
        if effective, ![.read, .readType].contains(call.verb) || call.domain == nil || currentHost {
            throw DefaultsWords.usage("--effective is for \"read\" and \"read-type\" of a domain")
        }
        let uid = try service.uid()
        let form = json ? DefaultsCall.Form.json : .word
        func run() async throws {
            let connection = try await service.connectAsUser()
            try await DefaultsCall(
                connection: connection, uid: uid, words: call, form: form, isCheck: check, isEffective: effective,
                isProgramsBus: service.bus.isProgramsBus
            ).run()
        }
        if call.verb == .watch { return try await run() }
        try await Progress.showing("Waiting for the service") { try await run() }
    }
}
