// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import Foundation

/// Heads that keep within their bound of bytes, and need twelve times as much memory: their stores have the shortest
/// entries that there are. docs/remote-format.md has the format.
struct LyingHeads {
    /// The account's identifier, in hexadecimal digits.
    let account: String

    /// Writes heads into an account's folder.
    func write(_ count: Int, in folder: String) throws {
        for number in 1...count {
            let origin = String(repeating: "e", count: 14) + String(format: "%02x", number)
            try Data(head(origin: origin, sequence: number)).write(to: URL(filePath: "\(folder)/h/\(origin)"))
        }
    }

    private func head(origin: String, sequence: Int) -> [UInt8] {
        var bytes = Array("UKVh".utf8) + [1, 0] + Self.bytes(account) + Self.bytes(origin)
        // Sequence, time, device, name; no index; one origin; nothing absent.
        bytes += [UInt8(sequence), 1, 1, 120, 1, 120, 0, 1] + Self.bytes(origin) + [0]
        let entries = Self.entries
        bytes += [UInt8(Self.stores)]
        for store in 0..<Self.stores {
            let digest = (0..<16).map { _ in UInt8.random(in: .min ... .max) }
            // A whole state without a base, whose context has one dot, with its entries, and nothing removed.
            bytes += [2] + Array(String(store + 10).utf8) + digest + [0, 0, 0, 1, 0, 9] + entries + [0]
        }
        bytes += [UInt8(sequence % 16)] + [UInt8](repeating: 0, count: sequence % 16) + Array("end\n".utf8)
        return bytes + Array(SHA256.hash(data: bytes))
    }

    /// As many as the bytes of a head allow.
    private static let stores = 56

    /// 8192 tombstones.
    private static let entries: [UInt8] =
        [0x80, 0x40]
        + (0..<8192).flatMap { number in
            let key = String(number + 46_656, radix: 36).utf8.suffix(3)
            return [3] + key + [0, 1, 0, 0, 1]
        }

    private static func bytes(_ digits: String) -> [UInt8] {
        stride(from: 0, to: digits.count, by: 2).map { place in
            UInt8(digits.dropFirst(place).prefix(2), radix: 16) ?? 0
        }
    }
}
