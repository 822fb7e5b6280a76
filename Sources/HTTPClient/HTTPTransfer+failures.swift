// SPDX-License-Identifier: Apache-2.0

internal import CCurl

extension HTTPTransfer {
    func failure(_ code: CURLcode) -> HTTPFailure {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST, CURLE_COULDNT_RESOLVE_PROXY: nameUnknown
        case CURLE_PROXY: .proxy(proxy, "did not let the request through: \(curl.text(of: code))")
        case CURLE_COULDNT_CONNECT: refused
        case CURLE_OPERATION_TIMEDOUT: timeout
        case CURLE_PEER_FAILED_VERIFICATION: .certificate(host, reason: certificateReason)
        case CURLE_SSL_CACERT_BADFILE: options.authority == nil ? .systemAuthorities : .authority
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_INVALIDCERTSTATUS:
            tlsRefusal ?? .secureConnection(host, reason: tlsReason)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2: .corrupt(host)
        default: tlsRefusal ?? connectionFailure
        }
    }

    private var refused: HTTPFailure {
        missingProxy.map { .proxy($0, "refuses connections: it is down, or the port is wrong") } ?? .refused(place)
    }

    private var nameUnknown: HTTPFailure {
        missingProxy.map { .proxy($0, "is unknown: its name can't be looked up now") } ?? .nameUnknown(host)
    }

    /// The failure after a timeout.
    var timeout: HTTPFailure { missingProxy.map { .proxy($0, "did not answer in time") } ?? .timedOut(host) }

    /// The proxy, if the connection to it failed.
    private var missingProxy: HTTPProxy? { curl.size(easy, CURLINFO_CONNECT_TIME_T) == 0 ? proxy : nil }

    private var connectionFailure: HTTPFailure {
        let status = curl.number(easy, CURLINFO_HTTP_CONNECTCODE)
        if status == 407 {
            return .proxy(proxy, "wants a login: write it in the variable, as http://USER:PASSWORD@HOST")
        }
        return status >= 300 ? .proxy(proxy, "did not let the request through: it answered \(status)") : .cut(host)
    }

    /// The failure that the server's alert means (RFC 8446, 6), if OpenSSL has received one. With TLS 1.3 one may come
    /// after the handshake.
    private var tlsRefusal: HTTPFailure? {
        let parts = String(cString: reason).split(separator: " alert ", maxSplits: 1)
        guard parts.count == 2, parts[0].contains("SSL routines") else { return nil }
        let clause =
            switch parts[1].prefix(while: { $0.isLetter || $0 == " " }) {
            case "protocol version": "it doesn't support TLS 1.2"
            case "certificate required": Self.certificateWish
            case "handshake failure":
                "it supports none of the methods that this device offers, or \(Self.certificateWish)"
            case let name: "it answers \"\(name)\""
            }
        return .secureConnectionRefused(host, clause: clause)
    }

    private static let certificateWish = "it requires a client certificate, which this service doesn't support"

    /// libcurl's reason for a failed handshake. For other errors its text may contain a proxy's address with its
    /// password.
    private var tlsReason: String {
        let text = String(cString: reason)
        return text.split(separator: ": ").last.map(String.init) ?? "TLS 1.2 or later could not be negotiated"
    }

    /// Why the certificate was refused, in OpenSSL's words. libcurl keeps the first error of a request. If a kept
    /// connection broke before a new one was tried, that is another error, and only OpenSSL's number says why.
    private var certificateReason: String {
        let result = curl.number(easy, CURLINFO_SSL_VERIFYRESULT)
        if result == shim_too_costly { return "it has too many names, and constraints on names, to compare" }
        let text = String(cString: reason)
        if text.contains("subject name") { return HTTPFailure.otherName }
        if text.contains("certificate") { return tlsReason }
        // The numbers are X509_V_ERR_…: see X509_STORE_CTX_get_error(3).
        return switch result {
        case 9: "certificate is not yet valid"
        case 10: "certificate has expired"
        case 18, 19: "self-signed certificate"
        case 20, 21: "unable to get local issuer certificate"
        default: "it doesn't match the address, or no authority that this device trusts has signed it"
        }
    }
}
