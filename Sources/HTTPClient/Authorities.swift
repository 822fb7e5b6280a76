// SPDX-License-Identifier: Apache-2.0

internal import EventLoop
internal import Foundation
internal import Glibc

/// The directory of the system's trusted certificates: one file for each, under a name by which OpenSSL finds it.
@BusActor
enum Authorities {
    nonisolated static let system = "/etc/ssl/certs"

    /// What was found in a directory, and the directory's state then.
    private static var found: [String: (state: [Int], areHashed: Bool)] = [:]

    /// Whether a directory has such names: eight digits of a hash, a dot and a number (`c_rehash`). The names are read
    /// again only after the directory has changed.
    static func areHashed(in directory: String) -> Bool {
        var status = stat()
        guard stat(directory, &status) == 0 else { return false }
        let state = [
            Int(bitPattern: UInt(status.st_dev)), Int(bitPattern: UInt(status.st_ino)), status.st_mtim.tv_sec,
            status.st_mtim.tv_nsec,
        ]
        if let found = found[directory], found.state == state { return found.areHashed }
        let areHashed = hasHashedNames(directory)
        found[directory] = (state, areHashed)
        return areHashed
    }

    /// Whether OpenSSL reads certificates in PEM without much work. It would compute the points of keys on curves that a
    /// certificate describes itself (by a field of type 1.2.840.10045.1), and copy the issuer's name for each CRL
    /// distribution point (2.5.29.31).
    nonisolated static func areSimple(_ pem: [UInt8]) -> Bool {
        var block: (end: [UInt8], text: Data)?
        for line in pem.split(whereSeparator: { $0 == 0x0A || $0 == 0x0D }) {
            let line = Array(line[...(line.lastIndex { $0 > 0x20 } ?? line.startIndex)])
            if let present = block {
                guard line == present.end else {
                    block?.text.append(contentsOf: line)
                    continue
                }
                guard let certificate = Data(base64Encoded: present.text), isSimple(certificate) else { return false }
                block = nil
            } else if line.starts(with: "-----BEGIN ".utf8) {
                guard let label = labels.first(where: { line == Array("-----BEGIN \($0)-----".utf8) }) else {
                    return false
                }
                block = (Array("-----END \(label)-----".utf8), Data())
            }
        }
        return block == nil
    }

    private nonisolated static let labels = ["CERTIFICATE", "TRUSTED CERTIFICATE", "X509 CERTIFICATE"]

    private nonisolated static func isSimple(_ certificate: Data) -> Bool {
        func has(_ part: [UInt8]) -> Bool {
            certificate.indices.contains { certificate[$0...].starts(with: part) }
        }
        return !has([0x2A, 0x86, 0x48, 0xCE, 0x3D, 0x01])
            && (certificate.count <= mostBytesWithPoints || !has([0x06, 0x03, 0x55, 0x1D, 0x1F]))
    }

    /// The most bytes of a certificate with CRL distribution points. One to two thousand are usual.
    private nonisolated static let mostBytesWithPoints = 4096

    private static func hasHashedNames(_ directory: String) -> Bool {
        guard let stream = opendir(directory) else { return false }
        defer { closedir(stream) }
        while let entry = readdir(stream) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name.utf8.count == 10, name.hasSuffix(".0"), name.dropLast(2).allSatisfy(\.isHexDigit) { return true }
        }
        return false
    }
}
