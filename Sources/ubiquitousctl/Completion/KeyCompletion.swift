// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// Completes the keys of a store, and words that belong to a key.
enum KeyCompletion {
    private static let options = ["--store", "--bus", "--user"]

    /// Returns the keys of the store that the words name.
    static func keys(_ arguments: [String]) -> [String] {
        CompletionQuestion.ask(arguments, options) { (options: StoreOptions) in
            try await options.withOpenStore { store in
                try await store.snapshot().values.keys.sorted().map(\.string)
            }
        }
    }

    /// Returns the numbers of the earlier values of the key that the words name.
    static func historyNumbers(_ arguments: [String], _ index: Int) -> [String] {
        guard let key = positionals(arguments, index, after: "restore").first else { return [] }
        return CompletionQuestion.ask(arguments, options) { (options: StoreOptions) in
            try await options.withOpenStore { store in
                try await store.history(key).indices.map { "\($0 + 1)" }
            }
        }
    }

    /// Returns what may stand at this place of `set`: a key, then a type or a value.
    static func assignment(_ arguments: [String], _ index: Int) -> [String] {
        let words = positionals(arguments, index, after: "set")
        switch words.last {
        case nil: return keys(arguments)
        case "-bool", "-boolean": return ["true", "false"]
        case _ where words.count == 1: return TypedWords.types + ["true", "false"]
        // Of an array or dictionary, each element may have a type of its own.
        case _ where ["-array", "-dict"].contains(words[1]): return TypedWords.types
        default: return []
        }
    }

    /// Returns the words between the subcommand and the one being completed, without options.
    private static func positionals(_ arguments: [String], _ index: Int, after subcommand: String) -> [String] {
        let before = CompletionQuestion.whole(Array(arguments.prefix(index)))
        guard let start = before.firstIndex(of: subcommand) else { return [] }
        var rest = before[(start + 1)...]
        var words: [String] = []
        while !rest.isEmpty {
            _ = OptionWords.take(from: &rest)
            if let word = rest.popFirst() { words.append(word) }
        }
        return words
    }
}
