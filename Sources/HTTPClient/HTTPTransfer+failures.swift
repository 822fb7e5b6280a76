// SPDX-License-Identifier: Apache-2.0

internal import CCurl

extension HTTPTransfer {
    func failure(_ code: CURLcode) -> HTTPFailure {
        switch code {
        case CURLE_COULDNT_RESOLVE_HOST: .nameUnknown(host)
        case CURLE_COULDNT_RESOLVE_PROXY: .proxy("its name can't be looked up")
        case CURLE_PROXY: .proxy(curl.text(of: code))
        case CURLE_COULDNT_CONNECT: .refused(host)
        case CURLE_OPERATION_TIMEDOUT: timeout
        case CURLE_PEER_FAILED_VERIFICATION: .certificate(host, reason: tlsReason)
        case CURLE_SSL_CACERT_BADFILE: .authority
        case CURLE_SSL_CONNECT_ERROR, CURLE_SSL_CIPHER, CURLE_SSL_CERTPROBLEM, CURLE_SSL_INVALIDCERTSTATUS:
            .secureConnection(host, reason: tlsReason)
        case CURLE_WEIRD_SERVER_REPLY, CURLE_UNSUPPORTED_PROTOCOL, CURLE_HTTP2: .senseless(host)
        default: connectionFailure
        }
    }

    /// What did not come in time.
    var timeout: HTTPFailure { .timedOut(host) }

    private var connectionFailure: HTTPFailure {
        let status = curl.number(easy, CURLINFO_HTTP_CONNECTCODE)
        return status >= 300 ? .proxy("it answered \(status)") : .cut(host)
    }

    /// What the library says of a certificate. Of other failures it may say the address of a proxy, with its password.
    private var tlsReason: String {
        let text = String(cString: reason)
        return text.split(separator: ": ").last.map(String.init) ?? "TLS 1.2 or later did not come about"
    }
}
