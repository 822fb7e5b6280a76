// SPDX-License-Identifier: Apache-2.0

// TLS runs on the event loop, where all calls wait for it, and a server chooses much of what it costs. So servers are
// limited to choices that cost little.

internal import CCurl
internal import Glibc
internal import RemoteAddress

extension HTTPTransfer {
    /// Sets which certificates are trusted, and which key agreements are allowed.
    func setTrust(_ options: HTTPOptions) throws(HTTPFailure) {
        try curl.set(easy, CURLOPT_SSLVERSION, shim_tls_1_2)
        try boundCost()
        guard let authority = options.authority else { return try setSystemTrust(options.systemAuthorities) }
        guard let authority = PEM.simpleCertificates(in: authority) else { throw .authority }
        // They replace the system's: a user who gives an authority trusts no other.
        try curl.set(easy, CURLOPT_CAPATH, nil)
        try curl.set(easy, authority: authority)
    }

    /// Makes OpenSSL look up a server's authority by name. Reading all authorities would block the event loop for 25 ms
    /// per connection.
    private func setSystemTrust(_ directory: String) throws(HTTPFailure) {
        guard curl.usesOpenSSL, Authorities.areHashed(in: directory) else { return }
        try curl.set(easy, CURLOPT_CAINFO, nil)
        try curl.set(easy, CURLOPT_CAPATH, directory)
    }

    /// Bounds the cost of a handshake. A server can name a prime of 10,000 bits for a Diffie-Hellman key agreement,
    /// which then takes over a second, send a hundred certificates whose signatures take milliseconds each, and names in
    /// them that OpenSSL compares with millions of constraints. It can send messages without end that OpenSSL skips
    /// while it waits for others: HelloRequest during the handshake (RFC 5246, 7.4.1.1), and later such as tickets for
    /// sessions, unless SSL_MODE_AUTO_RETRY is off (SSL_CTX_set_mode(3)).
    private func boundCost() throws(HTTPFailure) {
        guard curl.usesOpenSSL else { return }
        try curl.set(easy, CURLOPT_SSL_CIPHER_LIST, "DEFAULT:!kDHE")
        try curl.set(easy, CURLOPT_SSL_EC_CURVES, "X25519:P-256:P-384:P-521")
        guard let tls = curl.tls else { return }
        try curl.set(easy, pointer: CURLOPT_SSL_CTX_DATA, tls)
        try curl.set(easy) { _, context, tls in
            shim_tls_bound(context, tls, HTTPTransfer.mostIntermediates, HTTPTransfer.mostCertificateBytes)
            return CURLE_OK
        }
    }

    /// The most certificates between a server's and its authority's. One to three are usual.
    private nonisolated static let mostIntermediates: Int32 = 8
    /// The most bytes of all of a server's certificates. Four to eight thousand are usual.
    private nonisolated static let mostCertificateBytes = 32 << 10
}
