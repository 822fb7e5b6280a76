// SPDX-License-Identifier: Apache-2.0

// The calls of `defaults`, in macOS's form: [-currentHost] VERB [DOMAIN [KEY [VALUE…]]]. A domain is a name, -g or
// -globalDomain, or -app NAME.

internal import ManagedDefaults
internal import PropertyList
internal import PropertyListFiles

/// A parsed call of `defaults`.
struct DefaultsWords: Equatable {
    /// What to do.
    enum Verb: String, CaseIterable {
        case read, write, rename, delete, find, domains, help, export
        case readType = "read-type"
        case deleteAll = "delete-all"
        case importing = "import"
        case explain, history, watch, managed

        /// How many words may follow the domain; `nil` for any number.
        fileprivate var maximumCount: Int? {
            switch self {
            case .write, .help, .managed: nil
            case .domains: 0
            case .rename: 2
            default: 1
            }
        }
    }

    let verb: Verb
    /// Whether only the layer of this host is meant.
    let isCurrentHost: Bool
    /// The domain; `nil` for all domains.
    let domain: Text?
    /// The words after the domain.
    let rest: [String]

    /// The domain that `-g` names.
    static let globalDomain = ManagedFile.globalDomain

    /// Reads the words of a command line.
    ///
    /// - Throws: ``Failure`` that says what is missing or unknown.
    init(_ words: [String]) throws {
        var words = words[...]
        var isCurrentHost = false
        while let word = words.first, ["-currentHost", "-host"].contains(word) {
            words.removeFirst()
            isCurrentHost = true
            if word == "-host" { try Self.checkHost(words.popFirst()) }
        }
        guard let word = words.popFirst() else { throw Self.usage("The verb is missing") }
        guard let verb = Verb(rawValue: word) ?? Self.synonyms[word] else {
            throw Self.usage("There is no verb \(Output.quoted(word))")
        }
        self.verb = verb
        self.isCurrentHost = isCurrentHost
        domain = Self.takesDomain(word) ? try Self.domain(&words, isNeeded: verb != .read) : nil
        rest = Array(words)
        if let count = verb.maximumCount, let word = words.dropFirst(count).first {
            throw Self.usage("\(Output.quoted(word)) is one word too many")
        }
        // It would wait for a key of that name for ever.
        if verb == .watch, let word = rest.first, word.hasPrefix("-") {
            throw Self.usage("There is no option \(Output.quoted(word))")
        }
    }

    private static let synonyms: [String: Verb] = ["remove": .delete, "rm": .delete, "deleteall": .deleteAll]

    private static func checkHost(_ name: String?) throws {
        throw usage("Other hosts' settings are not here; use -currentHost")
    }

    /// Whether a domain follows a verb.
    static func takesDomain(_ verb: String) -> Bool { !["domains", "help", "find", "managed"].contains(verb) }

    private static func domain(_ words: inout ArraySlice<String>, isNeeded: Bool) throws -> Text? {
        guard let word = words.popFirst() else {
            if isNeeded { throw usage("The domain is missing") }
            return nil
        }
        switch word {
        case "-g", "-globalDomain", "NSGlobalDomain", "Apple Global Domain": return globalDomain
        case "-currentHost", "-host": throw usage("\(word) goes before the verb")
        case "-app":
            guard let name = words.popFirst() else { throw usage("-app takes the name of an app") }
            guard let domain = try InstalledApps.identifier(of: name) else {
                throw Failure(
                    .absent, "There is no app named \(Output.quoted(name))",
                    advice: "Nothing was changed. An app that is not installed can be named as a domain, without -app.")
            }
            return Text(domain)
        default:
            if let problem = DomainName.problem(word) {
                throw Failure(
                    .usage, "\(Output.quoted(word)) is not a domain: \(problem)",
                    advice: "Files are read with \"import\".")
            }
            return Text(word)
        }
    }

    /// Returns the error for a mistake in the command line.
    static func usage(_ sentence: Sentence) -> Failure {
        Failure(
            .usage, sentence,
            advice: "Verbs: \(Verb.allCases.map(\.rawValue).joined(separator: ", ")); see \"help\".")
    }

    // MARK: Values

    /// Whether `write` adds to the present value.
    static func isAddition(_ words: [String]) -> Bool { ["-array-add", "-dict-add"].contains(words.first) }

    /// Returns the value that `write` makes of the words after the key.
    ///
    /// - Parameter present: the present value, to which `-array-add` and `-dict-add` add.
    static func value(_ words: [String], addingTo present: Value?) throws -> Value {
        switch words.first {
        case "-array-add":
            guard case .array(let added) = try typed(["-array"] + words.dropFirst()).value else { break }
            guard case .array(let former) = present ?? .array([]) else {
                throw Failure(.usage, "The existing value is not an array; -array-add can't add to it")
            }
            return .array(former + added)
        case "-dict-add":
            guard case .dictionary(let added) = try typed(["-dict"] + words.dropFirst()).value else { break }
            guard case .dictionary(let former) = present ?? .dictionary([:]) else {
                throw Failure(.usage, "The existing value is not a dictionary; -dict-add can't add to it")
            }
            return .dictionary(former.merging(added) { $1 })
        default: break
        }
        let (value, rest) = try typed(words)
        if let word = rest.first {
            try checkIsNoOption(word)
            throw Failure(.usage, "\(Output.quoted(word)) follows the value")
        }
        return value
    }

    private static func checkIsNoOption(_ word: String) throws {
        if DefaultsCommand.options.contains(word) { throw usage("\(word) goes before the verb") }
    }

    /// Reads a value as macOS does: a word without a type is old-style text, in which a plain word is a string.
    private static func typed(_ words: [String]) throws -> (value: Value, rest: ArraySlice<String>) {
        try TypedWords.value(words[...]) { word in
            try checkIsNoOption(word)
            return try word.hasPrefix("-") ? TypedWords.untyped(word) : OldStyleText.value(word)
        }
    }
}
