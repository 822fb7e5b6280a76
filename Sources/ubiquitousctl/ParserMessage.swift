// SPDX-License-Identifier: Apache-2.0

/// Translates ArgumentParser's messages into the user's language.
///
/// ArgumentParser isn't localized. This code recognizes its frequent sentences by their English text; a sentence that
/// reads differently stays English. All help texts are in English.
enum ParserMessage {
    /// Returns an error message with all known lines translated.
    static func translated(_ message: String) -> String {
        message.split(separator: "\n", omittingEmptySubsequences: false).map { sentence(String($0)) ?? String($0) }
            .joined(separator: "\n")
    }

    /// Returns the option whose value is missing, according to an error message; `nil` for any other message.
    static func optionWithoutValue(_ message: String) -> String? {
        message.prefixMatch(of: /Error: Missing value for '(-[^' ]+)/).map { String($0.1) }
    }

    private static func sentence(_ line: String) -> String? {
        guard line.hasPrefix("Error: ") else { return frame(line) }
        return option(line) ?? argument(line) ?? localized("Error: \(line.dropFirst(7))")
    }

    private static func option(_ line: String) -> String? {
        if let (_, name, meant) = line.wholeMatch(of: /Error: Unknown option '(.*)'\. Did you mean '(.*)'\?/)?.output {
            if !isNear(name, meant) { return localized("Error: Unknown option '\(name)'") }
            return localized("Error: Unknown option '\(name)'. Did you mean '\(meant)'?")
        }
        if let (_, name) = line.wholeMatch(of: /Error: Unknown option '(.*)'/)?.output {
            return localized("Error: Unknown option '\(name)'")
        }
        if let (_, name) = line.wholeMatch(of: /Error: Missing value for '(.*)'/)?.output {
            return localized("Error: Missing value for '\(name)'")
        }
        let unexpected = /Error: The option '(.*)' does not take any value, but '(.*)' was specified\./
        if let (_, name, value) = line.wholeMatch(of: unexpected)?.output {
            return localized(
                "Error: The option '\(name)' does not take any value, but '\(value)' was specified.")
        }
        return nil
    }

    /// Whether an option may have been meant. ArgumentParser suggests every one of three letters for another one.
    private static func isNear(_ typed: Substring, _ meant: Substring) -> Bool {
        let (typed, meant) = (String(typed.drop { $0 == "-" }), String(meant.drop { $0 == "-" }))
        return meant.hasPrefix(typed) || Spelling.nearest(to: typed, in: [meant]) != nil
    }

    private static func argument(_ line: String) -> String? {
        if let (_, name) = line.wholeMatch(of: /Error: Missing expected argument '(.*)'/)?.output {
            return localized("Error: Missing expected argument '\(name)'")
        }
        if let (_, word) = line.wholeMatch(of: /Error: Unexpected argument '(.*)'/)?.output {
            return localized("Error: Unexpected argument '\(word)'")
        }
        if let (_, count, words) = line.wholeMatch(of: /Error: (\d+) unexpected arguments: (.*)/)?.output {
            return localized("Error: \(count) unexpected arguments: \(words)")
        }
        let invalid = /Error: The value '(.*)' is invalid for '([^']*)'(?:\. Please provide one of (.*)\.)?/
        if let (_, value, name, values) = line.wholeMatch(of: invalid)?.output {
            let sentence = localized("Error: The value '\(value)' is invalid for '\(name)'")
            return values.map { sentence + localized(". Please provide one of \($0).") } ?? sentence
        }
        return nil
    }

    /// Translates the lines around an error.
    private static func frame(_ line: String) -> String? {
        if let (_, command) = line.wholeMatch(of: #/  See '(.*)' for more information\./#)?.output {
            return localized("  See '\(command)' for more information.")
        }
        if let (_, help) = line.wholeMatch(of: /Help:  (.*)/)?.output {
            return localized("Help:  \(help)")
        }
        if let (_, usage) = line.wholeMatch(of: /Usage: (.*)/)?.output {
            return localized("Usage: \(usage)")
        }
        return nil
    }
}
