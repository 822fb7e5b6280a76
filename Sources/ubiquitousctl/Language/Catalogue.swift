// SPDX-License-Identifier: Apache-2.0

internal import ServiceMessages

/// The sentences of a language.
struct Catalogue: Sendable {
    /// The translations, by their English sentences. A sentence without one stays English.
    let sentences: [String: String]
    /// The quotation marks of the language, for words that a sentence quotes.
    private var quotationMarks = (opening: "\"", closing: "\"")

    init(sentences: [String: String]) { self.sentences = sentences }

    static let english = Catalogue(sentences: [:])

    /// The catalogues, by the language code that begins a locale's name.
    static let languages = ["de": german.quoting("„", "“")]

    /// The catalogue of the user's locale.
    static let present = MessageLanguage.preferred.lazy.compactMap { languages[$0] }.first ?? english

    private func quoting(_ opening: String, _ closing: String) -> Catalogue {
        var catalogue = self
        catalogue.quotationMarks = (opening, closing)
        return catalogue
    }

    /// Returns a sentence, translated, with its arguments inserted.
    func text(_ format: String, _ arguments: [String]) -> String {
        let translation = sentences[format]
        var rest = (translation ?? format)[...]
        var text = ""
        while let open = rest.firstIndex(of: "{") {
            text += rest[..<open]
            rest = rest[open...].dropFirst()
            guard let close = rest.firstIndex(of: "}"), let number = Int(rest[..<close]),
                arguments.indices.contains(number - 1)
            else {
                text += "{"
                continue
            }
            text += translation == nil ? arguments[number - 1] : requoted(arguments[number - 1])
            rest = rest[close...].dropFirst()
        }
        return text + rest
    }

    /// Returns a quoted word in the language's quotation marks; anything else unchanged.
    private func requoted(_ argument: String) -> String {
        guard argument.utf8.count > 1, argument.hasPrefix("\""), argument.hasSuffix("\"") else { return argument }
        let word = argument.dropFirst().dropLast()
        return word.contains("\"") ? argument : "\(quotationMarks.opening)\(word)\(quotationMarks.closing)"
    }
}
