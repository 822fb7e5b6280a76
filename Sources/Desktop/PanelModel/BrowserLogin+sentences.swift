// SPDX-License-Identifier: Apache-2.0

internal import GLibLoop

extension BrowserLogin {
    static var serverIsMissing: String { tr("Enter the server first.") }
}

extension BrowserLogin.Flaw {
    /// The error, for the field that it belongs to.
    package var fieldError: FieldError {
        switch self {
        case .noNextcloud: error(tr("This is not a Nextcloud server. Check the address."))
        case .notEncrypted(let host): error(tr("The connection to %1 would not be encrypted. Use https.", host.shown))
        case .otherServer(let host): error(tr("The server sent a login for another server, %1.", host.shown))
        case .unreachable(let reason): error(tr("The server can't be used."), reason.shown)
        case .expired: error(tr("The login has expired. Try again."))
        }
    }

    private func error(_ sentence: String, _ details: String = "") -> FieldError {
        FieldError(field: .server, sentence: sentence, details: details)
    }
}
