// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import HTTPClient
internal import Replication

extension RemoteError {
    /// Makes the error that tells users why there is no response.
    init(webDAV failure: HTTPFailure, isSecure: Bool) {
        switch failure {
        case .sentAway(let host, let place):
            // The scheme is that of an account's address.
            self.init(HTTPFailure.sentAway(host, to: "webdav" + place.dropFirst("http".count)))
        case .cut where !isSecure, .corrupt where !isSecure:
            self.init(.unavailable, "\(failure) \(Self.secureWish)")
        case .secureConnection where isSecure:
            self.init(.unavailable, "\(failure) If it has no TLS, the address must begin with webdav://.")
        default: self.init(failure)
        }
    }

    private static let secureWish = "If it has TLS, the address must begin with webdavs://."

    /// Makes the error that tells users what an unexpected response means.
    init(_ response: HTTPResponse, from address: HTTPAddress, hasCredentials: Bool) {
        let (code, sentence) = Self.meaning(of: response.status, address.host, address.path, hasCredentials)
        // Apache and nginx answer 400 if they expect TLS.
        let advice = response.status == 400 && !address.isSecure ? " \(Self.secureWish)" : ""
        self.init(code, sentence + advice, retryAfter: response.retryAfter)
    }

    private static func meaning(
        of status: Int, _ host: String, _ path: String, _ hasCredentials: Bool
    ) -> (Code, String) {
        switch status {
        case 303:
            return (
                .unavailable,
                "\(host) redirects \(path) to a web page: log in to the network in a browser, or check whether this is a "
                    + "WebDAV address."
            )
        case 401:
            return (
                .unauthorized,
                hasCredentials
                    ? "\(host) doesn't accept this user and password, or this token."
                    : "\(host) requires a user and a password."
            )
        case 403: return (.denied, "\(host) denies access to \(path). Give this user read and write permission there.")
        case 404, 409, 410: return (.unavailable, "There is no folder for \(path) on \(host).")
        case 405, 501: return (.unsupported, "\(host) is not a WebDAV server at \(path), or is read-only.")
        case 407: return (.unavailable, proxyWish)
        case 413: return (.full, "\(path) is too large for \(host).")
        case 423: return (.unavailable, "\(path) is locked on \(host) just now.")
        case 429: return (.unavailable, "\(host) refuses more requests for a while, because there were too many.")
        case 507: return (.full, "There is no space left on \(host).")
        case 500...: return (.unavailable, "\(host) reports an error of its own (status \(status)).")
        default: return (.unavailable, "\(host) answers with the unexpected status \(status) for \(path).")
        }
    }
}
