// SPDX-License-Identifier: Apache-2.0

/// The service's messages in a language. The service says them in English, because it doesn't know the languages of its
/// callers, so programs translate them where users read them.
package struct ServiceMessages: Sendable {
    private let formats: [MessageFormat]

    /// Makes a table of English formats, such as `There is no store "{1}".`, with their translations.
    init(_ translations: [String: String]) {
        // Of several formats that fit, the one that says most is meant.
        formats = translations.map { MessageFormat($0.key, translation: $0.value) }
            .sorted { ($1.size, $0.translation) < ($0.size, $1.translation) }
    }

    /// The tables, by the codes of their languages.
    static let languages = ["de": german]

    /// The table of the user's locale.
    private static let present =
        MessageLanguage.preferred.lazy.compactMap { languages[$0] }.first.map(ServiceMessages.init)

    /// Returns a message of the service in the user's language; unchanged if there is no translation.
    package static func localized(_ message: String) -> String { present?.translation(of: message) ?? message }

    /// Returns a message in this language; unchanged if there is no translation.
    func translation(of message: String) -> String { translation(of: message, depth: 0) }

    private func translation(of message: String, depth: Int) -> String {
        // The end of a sentence is rather the message's than in a value.
        whole(message, depth, spanning: false) ?? separately(message, depth) ?? whole(message, depth, spanning: true)
            ?? message
    }

    /// Translates a message by the format that fits it; `nil` if none does.
    /// - Parameter spans: whether a value may have the end of a sentence in it.
    private func whole(_ message: String, _ depth: Int, spanning spans: Bool) -> String? {
        for format in formats {
            guard let values = format.values(in: message),
                spans || !values.contains(where: { !$0.isQuoted && $0.text.contains(Self.sentenceEnd) })
            else { continue }
            return format.text(
                // A message may have another one in it. What is quoted is the user's.
                with: values.map { value in
                    value.isQuoted || depth == Self.deepest ? value.text : translation(of: value.text, depth: depth + 1)
                })
        }
        return nil
    }

    /// Translates the sentences of a message one by one; `nil` if the first one isn't known.
    private func separately(_ message: String, _ depth: Int) -> String? {
        guard depth < Self.deepest, let end = message.firstRange(of: Self.sentenceEnd) else { return nil }
        let (first, rest) = (message[..<message.index(before: end.upperBound)], message[end.upperBound...])
        guard let translation = whole(String(first), depth, spanning: false) else { return nil }
        return "\(translation) \(self.translation(of: String(rest), depth: depth))"
    }

    private static var sentenceEnd: Regex<Substring> { /[.] (?=[A-Z"])/ }

    /// How deep messages are in each other, at most.
    private static let deepest = 2
}

/// An English format with its translation.
struct MessageFormat: Sendable {
    /// The texts around the values, from the first to the last; one more than values.
    private let pieces: [String]
    let translation: String
    /// The number of bytes that a message has in common with the format.
    let size: Int

    init(_ format: String, translation: String) {
        pieces = format.split(separator: /\{[0-9]\}/, omittingEmptySubsequences: false).map(String.init)
        size = pieces.reduce(0) { $0 + $1.utf8.count }
        self.translation = translation
    }

    /// A value in a message.
    struct FormatValue {
        let text: String
        /// Whether it stands between quotation marks.
        let isQuoted: Bool
    }

    /// Returns the values in a message; `nil` if it isn't of this format.
    func values(in message: String) -> [FormatValue]? {
        guard let first = pieces.first, let last = pieces.last else { return nil }
        if pieces.count == 1 { return message == first ? [] : nil }
        guard message.utf8.count >= size, message.hasPrefix(first), message.hasSuffix(last) else { return nil }
        var rest = message.dropFirst(first.count).dropLast(last.count)
        var values: [FormatValue] = []
        // From the end, since paths and names come first, and may contain anything.
        for piece in pieces.dropFirst().dropLast().reversed() {
            guard let found = rest.ranges(of: piece).last else { return nil }
            values.append(FormatValue(text: String(rest[found.upperBound...]), isQuoted: piece.hasSuffix("\"")))
            rest = rest[..<found.lowerBound]
        }
        values.append(FormatValue(text: String(rest), isQuoted: first.hasSuffix("\"")))
        return values.reversed()
    }

    /// Returns the translation with these values in it.
    func text(with values: [String]) -> String {
        translation.replacing(/\{([0-9])\}/) { match in
            guard let number = Int(match.1), values.indices.contains(number - 1) else { return String(match.0) }
            return values[number - 1]
        }
    }
}
