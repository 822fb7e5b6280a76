// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc

/// Certificates as text (RFC 7468), as users name them for a server with an authority of its own.
package enum PEM {
    private static let labels = ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"]

    /// Whether a file has a certificate in it, by its labels alone. OpenSSL decodes it when it is used.
    package static func hasCertificate(_ bytes: [UInt8]) -> Bool {
        labels.contains { count("-----BEGIN \($0)-----", in: bytes) > 0 && count("-----END \($0)-----", in: bytes) > 0 }
    }

    /// Returns how many blocks of any kind begin.
    package static func blocks(in bytes: [UInt8]) -> Int { count("-----BEGIN ", in: bytes) }

    /// Returns the certificates of a file, encoded anew; `nil` if there are none, if something else is among them that
    /// OpenSSL might read, or if reading them is much work.
    ///
    /// OpenSSL is to get only what was looked at here: it also sees blocks within lines, for example. It would compute
    /// the points of keys on curves that a certificate describes itself (by a field of type 1.2.840.10045.1), and copy
    /// the issuer's name for each CRL distribution point (2.5.29.31).
    package static func simpleCertificates(in pem: [UInt8]) -> [UInt8]? {
        var certificates = ""
        var block: (label: String, text: Data)?
        for line in withoutMark(pem).split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = Array(line[...(line.lastIndex { $0 > 0x20 } ?? line.startIndex)])
            if let present = block {
                guard line == Array("-----END \(present.label)-----".utf8) else {
                    block?.text.append(contentsOf: line)
                    continue
                }
                guard let certificate = Data(base64Encoded: present.text), isSimple(certificate) else { return nil }
                certificates += encoded(certificate, present.label)
                block = nil
            } else if line.starts(with: "-----BEGIN ".utf8) {
                guard let label = labels.first(where: { line == Array("-----BEGIN \($0)-----".utf8) }) else {
                    return nil
                }
                block = (label, Data())
            }
        }
        return block == nil && !certificates.isEmpty ? Array(certificates.utf8) : nil
    }

    /// Returns a file without the mark that some editors put at the beginning of UTF-8.
    private static func withoutMark(_ bytes: [UInt8]) -> ArraySlice<UInt8> {
        bytes.dropFirst(bytes.starts(with: "\u{FEFF}".utf8) ? 3 : 0)
    }

    private static func encoded(_ certificate: Data, _ label: String) -> String {
        let text = certificate.base64EncodedString(options: [.lineLength64Characters, .endLineWithLineFeed])
        return "-----BEGIN \(label)-----\n\(text)\n-----END \(label)-----\n"
    }

    private static func isSimple(_ certificate: Data) -> Bool {
        func has(_ part: [UInt8]) -> Bool {
            certificate.indices.contains { certificate[$0...].starts(with: part) }
        }
        // Only the contents of the identifiers: their lengths have several encodings.
        return !has([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x01])
            && (certificate.count <= mostBytesWithPoints || !has([0x55, 0x1D, 0x1F]))
    }

    /// The most bytes of a certificate with CRL distribution points. One to two thousand are usual.
    private static let mostBytesWithPoints = 4096

    /// Counts a text in bytes. Swift's search in a text takes a time that grows with the square of some texts' length, and
    /// this is done on the bus thread.
    private static func count(_ text: String, in bytes: [UInt8]) -> Int {
        let text = Array(text.utf8)
        return bytes.withUnsafeBytes { bytes in
            guard var place = bytes.baseAddress else { return 0 }
            let end = place + bytes.count
            var count = 0
            while let found = memchr(place, Int32(text[0]), end - place).map({ UnsafeRawPointer($0) }) {
                if end - found >= text.count, memcmp(found, text, text.count) == 0 { count += 1 }
                place = found + 1
            }
            return count
        }
    }
}
