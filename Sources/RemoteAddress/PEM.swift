// SPDX-License-Identifier: Apache-2.0

/// Certificates as text (RFC 7468), as users name them for a server with an authority of its own.
package enum PEM {
    private static let labels = ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"]

    /// Whether a file has a certificate in it, by its labels alone. OpenSSL decodes it when it is used.
    package static func hasCertificate(_ bytes: [UInt8]) -> Bool {
        labels.contains { count("-----BEGIN \($0)-----", in: bytes) > 0 && count("-----END \($0)-----", in: bytes) > 0 }
    }

    /// Returns how many blocks of any kind begin.
    package static func blocks(in bytes: [UInt8]) -> Int { count("-----BEGIN ", in: bytes) }

    /// Counts a text in bytes. Swift's search in a text takes a time that grows with the square of some texts' length.
    private static func count(_ text: String, in bytes: [UInt8]) -> Int {
        let text = Array(text.utf8)
        return bytes.withUnsafeBufferPointer { bytes in
            bytes.indices.dropLast(text.count - 1).count { bytes[$0...].starts(with: text) }
        }
    }
}
