// SPDX-License-Identifier: Apache-2.0

// Texts for users, through gettext. `xgettext -L Vala -ktr -ktrn:1,2` makes the catalogues, and finds only literals:
// never pass an interpolated string, because translators would not see what it says.

internal import CGio
internal import Glibc

private let domain = "ubiquitous-store"

/// Sets the process's locale from the environment, and the directory of its translations: `$TEXTDOMAINDIR`, or else the
/// package's.
package func installTranslations() {
    setlocale(LC_ALL, "")
    bindtextdomain(domain, environmentVariable("TEXTDOMAINDIR") ?? "/usr/share/locale")
    bind_textdomain_codeset(domain, "UTF-8")
    textdomain(domain)
}

/// Returns a text in the user's language, with `%1`, `%2` … replaced by the arguments.
package func tr(_ text: String, _ arguments: String...) -> String {
    // gettext returns its argument if there is no translation.
    insert(arguments, into: text.withCString { String(cString: dgettext(domain, $0)) })
}

/// Returns a text about a number of things in the user's language, with `%1` replaced by the number.
package func trn(_ one: String, _ many: String, _ count: Int) -> String {
    let text = one.withCString { one in
        many.withCString { String(cString: dngettext(domain, one, $0, UInt(clamping: count))) }
    }
    return insert([String(count)], into: text)
}

private func insert(_ arguments: [String], into text: String) -> String {
    // In one scan, so that an argument that looks like a placeholder stays as it is.
    text.replacing(/%([1-9])/) { match in
        guard let number = Int(match.1), arguments.indices.contains(number - 1) else { return String(match.0) }
        return arguments[number - 1]
    }
}
