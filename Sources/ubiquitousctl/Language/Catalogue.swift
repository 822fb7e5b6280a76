// SPDX-License-Identifier: Apache-2.0

internal import ServiceMessages

/// The sentences of a language.
struct Catalogue: Sendable {
    /// The translations, by their English sentences. A sentence without one stays English.
    let sentences: [String: String]

    static let english = Catalogue(sentences: [:])

    /// The catalogues, by the language code that begins a locale's name.
    static let languages = ["de": german]

    /// The catalogue of the user's locale.
    static let present = MessageLanguage.preferred.lazy.compactMap { languages[$0] }.first ?? english

    /// Returns a sentence, translated, with its arguments inserted.
    func text(_ format: String, _ arguments: [String]) -> String {
        var rest = (sentences[format] ?? format)[...]
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
            text += arguments[number - 1]
            rest = rest[close...].dropFirst()
        }
        return text + rest
    }
}
