// SPDX-License-Identifier: Apache-2.0

/// Why there is no answer. Any answer of a server is an ``HTTPResponse``, whatever its status.
package enum HTTPFailure: Error, Equatable {
    /// libcurl can't be loaded, for this reason.
    case libraryMissing(String)
    /// The server's name can't be resolved.
    case nameUnknown(String)
    /// The connection was refused. The address includes the port unless it is the default.
    case refused(String)
    /// The server did not answer in time.
    case timedOut(String)
    /// The connection broke off.
    case cut(String)
    /// The server's certificate is not trusted, with the reason.
    case certificate(String, reason: String)
    /// No secure connection could be made, for this reason.
    case secureConnection(String, reason: String)
    /// The server refused a secure connection; the clause says why.
    case secureConnectionRefused(String, clause: String)
    /// The certificates to trust can't be read.
    case authority
    /// The system has no certificates to trust.
    case systemAuthorities
    /// The proxy failed; the clause says how.
    case proxy(HTTPProxy?, String)
    /// The answer exceeds the request's limit.
    case tooLarge(String)
    /// There is no memory for the answer: ``HTTPRequest/mayKeep`` returned false.
    case noRoom(String)
    /// The answer is not HTTP.
    case corrupt(String)
    /// The server redirects to another one, to which no credentials are sent.
    case sentAway(String, to: String)
    /// The server redirects again and again.
    case redirections(String)
    /// The request can't be sent; the clause says why.
    case unsendable(String)
    /// The client was closed.
    case closed
}

extension HTTPFailure: CustomStringConvertible {
    /// A sentence for users, without secrets.
    package var description: String {
        switch self {
        case .libraryMissing(let reason):
            "libcurl is needed for this address and can't be used; install libcurl4 (\(reason))."
        case .nameUnknown(let host): "There is no server \(host), or its name can't be looked up now."
        case .refused(let place): "\(place) refuses connections: the server is down, or the port is wrong."
        case .timedOut(let host): "\(host) did not answer in time."
        case .cut(let host): "The connection to \(host) broke off."
        case .certificate(let host, let reason):
            ["The certificate of \(host) is not trusted: \(reason).", CertificateFlaw(reason).advice]
                .joined(separator: " ")
        case .secureConnection(let host, let reason): "There is no secure connection to \(host): \(reason)."
        case .secureConnectionRefused(let host, let clause): "\(host) refuses a secure connection: \(clause)."
        case .authority: "The certificates to trust are not valid PEM, or take too long to read."
        case .systemAuthorities:
            "This device has no certificates of authorities to trust. Install ca-certificates."
        case .proxy(let proxy, let clause): "The proxy \(proxy.map { "\($0) " } ?? "")\(clause)."
        case .tooLarge(let host): "The answer from \(host) is larger than any valid one, so it was discarded."
        case .noRoom(let host): "The service has no memory to spare for the answer from \(host). It retries later."
        case .corrupt(let host): "\(host) did not answer with HTTP. Check the port."
        case .sentAway(let host, let place):
            "\(host) redirects to \(place). The service doesn't send credentials there; if that is the right server, "
                + "sign in with its address."
        case .redirections(let host): "\(host) redirects too often. The address may have changed."
        case .unsendable(let clause): "This can't be sent: \(clause)."
        case .closed: "The account was closed."
        }
    }

    /// What may be wrong with a certificate.
    private enum CertificateFlaw {
        case outOfDate, otherName, unknownAuthority

        /// - Parameter reason: the reason for which it is refused, as a clause.
        init(_ reason: String) {
            if reason.contains("not yet valid") || reason.contains("expired") {
                self = .outOfDate
            } else {
                self = reason == HTTPFailure.otherName ? .otherName : .unknownAuthority
            }
        }

        /// What users can do about it.
        var advice: String {
            switch self {
            case .outOfDate: "Check this device's clock. If it is right, renew the server's certificate."
            case .otherName: "Give the address with a name that is in the certificate, or renew the server's."
            case .unknownAuthority: "If the server has an authority of its own, sign in with its certificate."
            }
        }
    }

    /// Whether another authority's certificate may be what is missing.
    package var isAuthorityUnknown: Bool {
        if case .certificate(_, let reason) = self { CertificateFlaw(reason) == .unknownAuthority } else { false }
    }

    /// The reason if a certificate has other names than the address.
    static let otherName = "it is for another name"
}
