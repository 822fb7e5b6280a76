// SPDX-License-Identifier: Apache-2.0

internal import PropertyList
internal import PropertyListFiles

/// Reads values from words of the command line, with types as in defaults(1).
struct TypedWords {
    private var words: ArraySlice<String>
    /// Reads a word without a type.
    private let untyped: (String) throws -> Value

    /// Returns the value that the first words make, and the remaining words.
    ///
    /// `-array` and `-dict` take all remaining words.
    /// - Parameter untyped: reads a word without a type.
    static func value(
        _ words: ArraySlice<String>, untyped: @escaping (String) throws -> Value = Self.untyped
    ) throws -> (value: Value, rest: ArraySlice<String>) {
        var reader = TypedWords(words: words, untyped: untyped)
        let value = try reader.value(nesting: 0)
        return (value, reader.words)
    }

    private mutating func value(nesting: Int) throws -> Value {
        guard let word = words.popFirst() else {
            throw Failure(.usage, "A value is missing.", advice: Self.usage)
        }
        guard nesting <= Limits.standard.depth else {
            throw Failure(.usage, "Containers are nested more than \(Limits.standard.depth) deep.")
        }
        switch word {
        case "-array": return .array(try array(nesting: nesting))
        case "-dict": return .dictionary(try dictionary(nesting: nesting))
        case "-string", "-int", "-integer", "-float", "-real", "-bool", "-boolean", "-date", "-data":
            guard let text = words.popFirst() else {
                throw Failure(.usage, "A value is missing after \(word).", advice: Self.usage)
            }
            return try Self.scalar(word, text)
        case "--":
            guard let text = words.popFirst() else {
                throw Failure(.usage, "A value is missing after \(word).", advice: Self.usage)
            }
            return try ValueText.value(text)
        default:
            return try untyped(word)
        }
    }

    static let types = [
        "-string", "-int", "-integer", "-float", "-real", "-bool", "-boolean", "-date", "-data", "-array", "-dict",
    ]

    /// Reads a word without a type. Refuses one that looks like a type or an option, which is probably a mistake.
    static func untyped(_ word: String) throws -> Value {
        let value = try ValueText.value(word)
        guard case .string = value, word.hasPrefix("-"), word != "-" else { return value }
        let advice: Sentence = "Put -string before it if it is meant as text."
        if OptionWords.isOption(word) { throw Failure(.usage, "\(word) goes before the value.", advice: advice) }
        let meant = Spelling.nearest(to: word, in: types).map { localized("Did you mean \($0)?") + " " } ?? ""
        throw Failure(
            .usage, "There is no type and no option \(Output.quoted(word)) for a value.",
            advice: Sentence(verbatim: meant + advice.text))
    }

    private mutating func array(nesting: Int) throws -> [Value] {
        var values: [Value] = []
        while !words.isEmpty { values.append(try value(nesting: nesting + 1)) }
        return values
    }

    private mutating func dictionary(nesting: Int) throws -> [Text: Value] {
        var values: [Text: Value] = [:]
        while let word = words.popFirst() {
            let key = Text(word)
            guard values[key] == nil else { throw Failure(.usage, "The key \(Output.quoted(word)) comes twice.") }
            guard !words.isEmpty else { throw Failure(.usage, "The key \(Output.quoted(word)) of -dict has no value.") }
            values[key] = try value(nesting: nesting + 1)
        }
        return values
    }

    private static let usage: Sentence = """
        Give a value, or one of -string, -int, -float, -bool, -date, -data, -array and -dict with its value.
        """

    private static func scalar(_ type: String, _ text: String) throws -> Value {
        switch type {
        case "-string": return .string(Text(text))
        case "-int", "-integer": if let number = Int64(text) { return .integer(number) }
        case "-float", "-real": if let number = real(text) { return .real(number) }
        case "-bool", "-boolean": if let value = booleans[text.lowercased()] { return .boolean(value) }
        case "-date": return .date(try DateWord.seconds(text))
        default: if let bytes = hexadecimal(text) { return .data(bytes) }
        }
        throw Failure(.usage, "\(Output.quoted(text)) doesn't go with \(type): \(expectations[type]?.text ?? "").")
    }

    private static let booleans = [
        "true": true, "yes": true, "1": true, "false": false, "no": false, "0": false,
    ]

    private static let expectations: [String: Sentence] = [
        "-int": "it takes a whole number of 64 bits", "-integer": "it takes a whole number of 64 bits",
        "-float": "it takes a number, nan, inf or -inf", "-real": "it takes a number, nan, inf or -inf",
        "-bool": "it takes true, yes, 1, false, no or 0", "-boolean": "it takes true, yes, 1, false, no or 0",
        "-data": "it takes pairs of hexadecimal digits",
    ]

    private static func real(_ text: String) -> Double? {
        if let number = Double(text), number.isFinite { return number }
        return ["nan", "inf", "-inf"].contains(text) ? RealText.real(text) : nil
    }

    private static func hexadecimal(_ text: String) -> [UInt8]? {
        let digits = Array(text.utf8)
        guard digits.count.isMultiple(of: 2), text.allSatisfy(\.isHexDigit) else { return nil }
        return stride(from: 0, to: digits.count, by: 2).compactMap {
            UInt8(String(decoding: digits[$0...$0 + 1], as: UTF8.self), radix: 16)
        }
    }
}
