// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The sentences of a language.
struct Catalogue: Sendable {
    /// By the sentence in English; what isn't there stays English.
    let sentences: [String: String]

    static let english = Catalogue(sentences: [:])

    /// The languages that there are, by the code that begins the name of a locale.
    static let languages = ["de": german]

    /// That of the person's locale.
    static let present = of { name in getenv(name).map { String(cString: $0) } }

    /// The catalogue that an environment asks for, by the rules of gettext.
    static func of(_ variable: (String) -> String?) -> Catalogue {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(variable).first { !$0.isEmpty } ?? "C"
        if ["C", "POSIX"].contains(locale.prefix { $0 != "." }) { return english }
        let wanted = (variable("LANGUAGE") ?? "").split(separator: ":").map(String.init) + [locale]
        for name in wanted {
            let code = String(name.prefix { $0.isLetter })
            if code == "en" { return english }
            if let catalogue = languages[code] { return catalogue }
        }
        return english
    }

    /// A sentence with its arguments.
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
