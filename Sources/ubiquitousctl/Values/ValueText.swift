// SPDX-License-Identifier: Apache-2.0

// Each value has one word. A user types `dark`, `12` or `["a", 1.5]`, and `get` prints a word that `set` reads as the
// same value of the same type: JSON for everything but strings, and a string as it is unless it could be mistaken for
// something else.

internal import PropertyList
internal import PropertyListFiles

/// Values as words of the command line.
enum ValueText {
    /// Returns the word for a value.
    static func word(_ value: Value) -> String {
        if case .string(let text) = value, isBare(text.string) { return text.string }
        return JSONWriter.write(value)
    }

    /// Returns the word for a value for use in a sentence; of a long word, only its beginning.
    static func beginning(_ value: Value) -> String {
        let word = word(value).unicodeScalars
        return word.count > 200 ? String(String.UnicodeScalarView(word.prefix(200))) + "…" : String(word)
    }

    /// Returns a key as it is, or in quotes if it could be misread.
    static func word(key: Text) -> String {
        isBare(key.string) && !key.string.contains(" ") ? key.string : JSONWriter.write(.string(key))
    }

    /// Returns the value of a word without a type: JSON if the word is any, and otherwise a string.
    ///
    /// - Throws: ``Failure`` if the word begins like JSON but isn't valid, because that is probably a mistake.
    static func value(_ word: String) throws -> Value {
        do {
            return try JSONReader.read(Array(word.utf8))
        } catch {
            guard looksLikeJSON(word) else { return .string(Text(word)) }
            if trimmed(word).elementsEqual("null".utf8) {
                throw Failure(
                    .usage, "No value is null.",
                    advice: "\"ubiquitousctl remove\" removes a key; put -string before null if it is meant as text.")
            }
            throw Failure(
                .usage, "The value is not JSON: \(error).", advice: "Put -string before it if it is meant as text.")
        }
    }

    private static func looksLikeJSON(_ word: String) -> Bool {
        let trimmed = trimmed(word)
        guard let first = trimmed.first else { return false }
        return "{[\"".utf8.contains(first) || trimmed.elementsEqual("null".utf8) || isNumber(word)
    }

    private static func trimmed(_ word: String) -> Substring.UTF8View {
        word.utf8.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
    }

    /// Whether a word is a number, also one that a property list can't hold, such as 99999999999999999999 or 1e400.
    private static func isNumber(_ word: String) -> Bool {
        word.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil
    }

    /// Whether a string reads back as itself, and has no invisible parts.
    private static func isBare(_ string: String) -> Bool {
        let scalars = string.unicodeScalars
        guard let first = scalars.first, let last = scalars.last, first != "-",
            !first.properties.isWhitespace, !last.properties.isWhitespace,
            !scalars.contains(where: \.isHidden),
            let value = try? value(string)
        else { return false }
        return value == .string(Text(string))
    }
}
