// SPDX-License-Identifier: Apache-2.0

internal import ServiceMessages

/// A sentence for users, in their language: a literal in English, which is the key of its translation.
///
/// Interpolated values are numbered, so that a translation can reorder them: `There is no user {1}`.
struct Sentence: ExpressibleByStringInterpolation, Sendable {
    /// The translated sentence.
    let text: String

    init(stringLiteral format: String) { text = Catalogue.present.text(format, []) }

    init(stringInterpolation parts: Parts) { text = Catalogue.present.text(parts.format, parts.arguments) }

    /// Makes a sentence of a message of the service.
    init(service message: String) { text = ServiceMessages.localized(message) }

    /// Makes a sentence of text from elsewhere, without translating it.
    init(verbatim text: String) { self.text = text }

    /// The parts of a literal.
    struct Parts: StringInterpolationProtocol {
        fileprivate var format = ""
        fileprivate var arguments: [String] = []

        init(literalCapacity: Int, interpolationCount: Int) {}

        mutating func appendLiteral(_ literal: String) { format += literal }

        mutating func appendInterpolation(_ value: some CustomStringConvertible) {
            arguments.append(value.description)
            format += "{\(arguments.count)}"
        }

        mutating func appendInterpolation(_ error: any Error) {
            appendInterpolation(ServiceMessages.localized("\(error)"))
        }

        mutating func appendInterpolation(_ sentence: Sentence) { appendInterpolation(sentence.text) }
    }
}

/// Returns a part of a sentence in the user's language.
func localized(_ sentence: Sentence) -> String { sentence.text }
