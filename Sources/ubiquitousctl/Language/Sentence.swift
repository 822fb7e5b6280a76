// SPDX-License-Identifier: Apache-2.0

/// A sentence for people, in their language: a literal, whose English is what it is looked up by.
///
/// What is interpolated has a number, by which a translation puts it in its place: `There is no user {1}`.
struct Sentence: ExpressibleByStringInterpolation, Sendable {
    /// The sentence.
    let text: String

    init(stringLiteral format: String) { text = Catalogue.present.text(format, []) }

    init(stringInterpolation parts: Parts) { text = Catalogue.present.text(parts.format, parts.arguments) }

    /// A sentence that comes from elsewhere, as it is.
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

        mutating func appendInterpolation(_ error: any Error) { appendInterpolation("\(error)" as String) }

        mutating func appendInterpolation(_ sentence: Sentence) { appendInterpolation(sentence.text) }
    }
}

/// A part of a sentence in the person's language.
func localized(_ sentence: Sentence) -> String { sentence.text }
