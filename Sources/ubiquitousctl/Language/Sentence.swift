// SPDX-License-Identifier: Apache-2.0

internal import ServiceMessages

/// A sentence for users, in their language: a literal in English, which is the key of its translation.
///
/// Interpolated values are numbered, so that a translation can reorder them: `There is no user {1}`.
struct Sentence: ExpressibleByStringInterpolation, Sendable {
    /// The translated sentence.
    let text: String
    /// The sentence in English, for results: programs read them.
    let english: String

    init(stringLiteral format: String) {
        (text, english) = (Catalogue.present.text(format, []), Catalogue.english.text(format, []))
    }

    init(stringInterpolation parts: Parts) {
        text = Catalogue.present.text(parts.format, parts.arguments.map(\.text))
        english = Catalogue.english.text(parts.format, parts.arguments.map(\.english))
    }

    /// Makes a sentence of a message of the service.
    init(service message: String) { (text, english) = (ServiceMessages.localized(message), message) }

    /// Makes a sentence of text from elsewhere, without translating it.
    init(verbatim text: String) { (self.text, english) = (text, text) }

    /// The parts of a literal.
    struct Parts: StringInterpolationProtocol {
        fileprivate var format = ""
        fileprivate var arguments: [Sentence] = []

        init(literalCapacity: Int, interpolationCount: Int) {}

        mutating func appendLiteral(_ literal: String) { format += literal }

        mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            appendInterpolation(Sentence(verbatim: value.description))
        }

        mutating func appendInterpolation(_ error: any Error) { appendInterpolation(Sentence(service: "\(error)")) }

        mutating func appendInterpolation(_ sentence: Sentence) {
            arguments.append(sentence)
            format += "{\(arguments.count)}"
        }
    }
}

/// Returns a part of a sentence in the user's language.
func localized(_ sentence: Sentence) -> String { sentence.text }
