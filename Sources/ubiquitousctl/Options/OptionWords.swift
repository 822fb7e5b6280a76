// SPDX-License-Identifier: Apache-2.0

/// Recognizes the options of `set` among words that are parsed by hand, because values may look like options.
enum OptionWords {
    private static let flags: Set = ["--check", "--dry-run", "-n", "--json", "--string", "-h", "--help"]
    private static let withArgument: Set = ["--store", "-s", "--bus", "--user"]

    /// Removes the leading options from the words, and returns them with their arguments.
    static func take(from words: inout ArraySlice<String>) -> [String] {
        var taken: ArraySlice<String> = []
        while let word = words.first, case let count = length(word), count > 0 {
            taken += words.prefix(count)
            words = words.dropFirst(count)
        }
        return Array(taken)
    }

    /// Whether a word is an option of commands that take a value.
    static func isOption(_ word: String) -> Bool { length(word) > 0 }

    /// Returns how many words an option takes, itself included; 0 if the word isn't an option.
    private static func length(_ word: String) -> Int {
        if flags.contains(word) { return 1 }
        if withArgument.contains(word) { return 2 }
        return word.contains("=") && withArgument.contains(String(word.prefix { $0 != "=" })) ? 1 : 0
    }
}
