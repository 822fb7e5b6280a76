// SPDX-License-Identifier: Apache-2.0

internal import CCurl

/// An authentication scheme for passwords.
enum HTTPScheme {
    case basic, digest

    /// The scheme that a refusal asks for, preferring Digest; `nil` for any other answer.
    init?(_ response: HTTPResponse) {
        guard response.status == 401 else { return nil }
        let names = Self.names(in: response.headers["www-authenticate"] ?? "")
        if names.contains("digest") {
            self = .digest
        } else if names.contains("basic") {
            self = .basic
        } else {
            return nil
        }
    }

    /// Returns the schemes of challenges (RFC 9110, 11.6.1). Quoted strings may contain any text.
    private static func names(in challenges: String) -> Set<String> {
        var (plain, isQuoted, isEscaped) = ("", false, false)
        for character in challenges.unicodeScalars {
            if character == "\"" && !isEscaped { isQuoted.toggle() }
            if !isQuoted { plain.unicodeScalars.append(character) }
            isEscaped = isQuoted && character == "\\" && !isEscaped
        }
        return Set(
            plain.lowercased().split(separator: ",").compactMap {
                $0.split { " \t".contains($0) }.first.map(String.init)
            })
    }
}

extension Optional<HTTPScheme> {
    /// libcurl's constant for the scheme.
    var bits: Int {
        switch self {
        case .basic: shim_auth_basic
        case .digest: shim_auth_digest
        case nil: shim_auth_none
        }
    }
}
