// SPDX-License-Identifier: Apache-2.0

// One word for each value. A person types `dark`, `12` or `["a", 1.5]`, and what `get` prints is a word that `set`
// takes for the same value of the same type: JSON for everything but strings, and strings as they are as long as
// nothing else could be meant.

internal import PropertyList
internal import PropertyListFiles

/// Values as words of the command line.
enum ValueText {
    /// The word of a value.
    static func word(_ value: Value) -> String {
        if case .string(let text) = value, isBare(text.string) { return text.string }
        return JSONWriter.write(value)
    }

    /// The word of a value as a part of a sentence; of one that is long, its beginning.
    static func beginning(_ value: Value) -> String {
        let word = word(value).unicodeScalars
        return word.count > 200 ? String(String.UnicodeScalarView(word.prefix(200))) + "…" : String(word)
    }

    /// A key as it is, or in quotes if it has something in it that could be mistaken.
    static func word(key: Text) -> String {
        isBare(key.string) && !key.string.contains(" ") ? key.string : JSONWriter.write(.string(key))
    }

    /// The value of a word without a type: JSON where it is any, and else a string.
    ///
    /// - Throws: ``Failure`` for what begins as JSON and is broken: it is rather a slip than a string.
    static func value(_ word: String) throws -> Value {
        do {
            return try JSONReader.read(Array(word.utf8))
        } catch {
            guard looksLikeJSON(word) else { return .string(Text(word)) }
            throw Failure(
                .usage, "The value is no JSON: \(error).", advice: "Put -string before it if it is meant as text.")
        }
    }

    private static func looksLikeJSON(_ word: String) -> Bool {
        let trimmed = word.utf8.drop { $0 == 0x20 || $0 == 0x09 || $0 == 0x0A || $0 == 0x0D }
        guard let first = trimmed.first else { return false }
        return "{[\"".utf8.contains(first) || trimmed.elementsEqual("null".utf8) || isNumber(word)
    }

    /// A number that a property list doesn't have, as 99999999999999999999 or 1e400.
    private static func isNumber(_ word: String) -> Bool {
        word.wholeMatch(of: /-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?/) != nil
    }

    /// Whether a string is taken for nothing but itself, and shows whatever it holds.
    private static func isBare(_ string: String) -> Bool {
        let scalars = string.unicodeScalars
        guard let first = scalars.first, let last = scalars.last, first != "-",
            !first.properties.isWhitespace, !last.properties.isWhitespace,
            scalars.allSatisfy({ $0.value >= 0x20 && !(0x7F...0x9F).contains($0.value) }),
            let value = try? value(string)
        else { return false }
        return value == .string(Text(string))
    }
}
