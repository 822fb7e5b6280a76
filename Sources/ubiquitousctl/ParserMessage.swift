// SPDX-License-Identifier: Apache-2.0

/// What ArgumentParser says of a command line, in the person's language.
///
/// It has no languages of its own. Its frequent sentences are known here by their English, which is what stays where they
/// read otherwise. Helps are in English, as all of them are.
enum ParserMessage {
    /// The message of an error, with each line that is known in the person's language.
    static func translated(_ message: String) -> String {
        message.split(separator: "\n", omittingEmptySubsequences: false).map { sentence(String($0)) ?? String($0) }
            .joined(separator: "\n")
    }

    private static func sentence(_ line: String) -> String? {
        guard line.hasPrefix("Error: ") else { return frame(line) }
        return option(line) ?? argument(line) ?? localized("Error: \(line.dropFirst(7))")
    }

    private static func option(_ line: String) -> String? {
        if let (_, name, meant) = line.wholeMatch(of: /Error: Unknown option '(.*)'\. Did you mean '(.*)'\?/)?.output {
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

    /// What stands around a sentence.
    private static func frame(_ line: String) -> String? {
        if let (_, command) = line.wholeMatch(of: #/  See '(.*)' for more information\./#)?.output {
            return localized("  See '\(command)' for more information.")
        }
        if let (_, usage) = line.wholeMatch(of: /Usage: (.*)/)?.output {
            return localized("Usage: \(usage)")
        }
        return nil
    }
}
