// SPDX-License-Identifier: Apache-2.0

/// Certificates as text (RFC 7468), as users name them for a server with an authority of its own.
package enum PEM {
    private static let labels = ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"]

    /// Whether a file has a certificate in it, by its labels alone. OpenSSL decodes it when it is used.
    package static func hasCertificate(_ bytes: [UInt8]) -> Bool {
        let text = String(decoding: bytes, as: UTF8.self)
        return labels.contains { text.contains("-----BEGIN \($0)-----") && text.contains("-----END \($0)-----") }
    }
}
