// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The languages of messages.
package enum MessageLanguage {
    /// The languages that the user's locale asks for, by their codes, the best one first: none for English.
    package static let preferred = preferred(in: { name in getenv(name).map { String(cString: $0) } })

    /// Returns the languages that an environment asks for, by gettext's rules.
    package static func preferred(in variable: (String) -> String?) -> [String] {
        let locale = ["LC_ALL", "LC_MESSAGES", "LANG"].lazy.compactMap(variable).first { !$0.isEmpty } ?? "C"
        if ["C", "POSIX"].contains(locale.prefix { $0 != "." }) { return [] }
        let wanted = (variable("LANGUAGE") ?? "").split(separator: ":").map(String.init) + [locale]
        return Array(wanted.map { String($0.prefix { $0.isLetter }) }.prefix { $0 != "en" })
    }
}
