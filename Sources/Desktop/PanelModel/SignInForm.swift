// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop
internal import RemoteAddress
package import UbiquitousStore

/// What the user enters to sign in.
package struct SignInForm: Equatable, Sendable {
    package var kind: RemoteKind
    /// The texts exactly as they were typed. Each kind has its own fields.
    package var values: [SignInField: String] = [:]
    /// Whether a new account is to be encrypted, if its kind can be.
    package var encrypts = true
    /// The recovery words, if the account exists and is encrypted.
    package var recoveryWords: String?
    /// Whether this device's present values go into a new account.
    package var bringsValues = false
    /// The certificates in the chosen file.
    package var certificate: [UInt8]?
    /// The address of the account that is signed in, if it gets new credentials; see ``init(renewing:)``.
    var renewed: String?

    package init(_ kind: RemoteKind) { self.kind = kind }

    /// Returns the text of a field of this kind, without surrounding spaces unless it is secret.
    package func text(_ field: SignInField) -> String {
        guard kind.fields.contains(field) else { return "" }
        let text = values[field] ?? field.preset
        return field.isSecret ? text : text.trimmed
    }

    /// Whether an account that is made now gets encrypted.
    package var makesEncrypted: Bool { encrypts && recoveryWords == nil }

    /// A warning before the user types a password; `nil` if there is none, or the form is incomplete.
    package var warning: String? {
        guard let url = try? address(), RemoteAddress.warning(of: url) != nil else { return nil }
        return tr("The connection is not encrypted: others can read the password, and change settings. Use https.")
    }

    /// Returns the options for the service.
    ///
    /// - Throws: ``FieldError`` if something is missing or contradictory.
    package func options() throws(FieldError) -> SignInOptions {
        var options = SignInOptions()
        let password = text(kind == .nextcloud ? .appPassword : .password)
        let (user, token) = (text(.user), text(.token))
        try checkCredentials(user, password, token)
        if !user.isEmpty { options.user = user }
        if !password.isEmpty { options.password = password }
        if !token.isEmpty { options.token = token }
        options.certificateAuthority = certificate
        if renewed != nil { options.renews = true }
        if bringsValues { options.bringsValues = true }
        if makesEncrypted { options.encrypts = true }
        options.recoveryPhrase = recoveryWords
        return options
    }

    /// Reads the certificates from the named file.
    ///
    /// - Throws: ``FieldError`` if it can't be read.
    package mutating func readCertificate() throws(FieldError) {
        let path = text(.certificate)
        if path.isEmpty { return }
        guard let bytes = smallFile(path, limit: 1 << 20) else {
            throw FieldError(field: .certificate, sentence: tr("This file can't be read as a certificate."))
        }
        certificate = bytes
    }

    private func checkCredentials(_ user: String, _ password: String, _ token: String) throws(FieldError) {
        if !token.isEmpty, !user.isEmpty || !password.isEmpty {
            throw FieldError(field: .token, sentence: tr("Enter either a token, or a user name and a password."))
        }
        let passwordField: SignInField = kind == .nextcloud ? .appPassword : .password
        // The account that is signed in keeps its user name.
        if renewed == nil, kind == .nextcloud || !password.isEmpty, user.isEmpty {
            throw FieldError(field: .user, sentence: tr("Enter the user name."))
        }
        let isNothingNew = renewed != nil && token.isEmpty && certificate == nil
        if !user.isEmpty || isNothingNew, password.isEmpty {
            throw FieldError(field: passwordField, sentence: tr("Enter the password."))
        }
    }
}

extension String {
    var trimmed: String {
        let start = unicodeScalars.drop { $0.properties.isWhitespace }
        guard let end = start.lastIndex(where: { !$0.properties.isWhitespace }) else { return "" }
        return String(start[...end])
    }
}
