// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Blobs
internal import Crypto
internal import PropertyList
internal import PropertyListFiles
internal import Sealing

/// Bytes from outside, which may be forged: what reads them, and what has to hold if they can be read.
public enum FuzzTarget: String, CaseIterable, Sendable {
    /// The canonical encoding, and files of property lists.
    case values
    /// Manifests of apps.
    case manifests
    /// Heads of devices, without the sum at the end; and indexes.
    case heads
    /// Segments of stores and of version vectors.
    case segments
    /// Blobs under an account's key, and what is in their boxes.
    case sealed
    /// Markers of encrypted accounts and notes, without the sums at their ends.
    case markers
    /// Recovery phrases.
    case phrases

    /// Reads bytes, and checks what was read.
    ///
    /// - Returns: what does not hold, in words; `nil` if everything does. Bytes that can't be read are no problem.
    public func problem(with bytes: [UInt8]) -> String? {
        switch self {
        case .values: Self.encoding(bytes) ?? Self.file(bytes)
        case .manifests: Self.manifest(bytes)
        case .heads: Self.head(bytes) ?? Self.index(bytes)
        case .segments: Self.segment(bytes) ?? Self.vector(bytes)
        case .sealed: Self.sealed(bytes)
        case .markers: Self.marker(bytes)
        case .phrases: Self.phrase(bytes)
        }
    }

    private static func encoding(_ bytes: [UInt8]) -> String? {
        guard let value = try? Value(encoded: bytes) else { return nil }
        return value.encoded() == bytes ? nil : "a value's encoding is another than the one it was read from"
    }

    private static func file(_ bytes: [UInt8]) -> String? {
        guard let value = try? FileFormat(of: bytes).read(bytes) else { return nil }
        for format in FileFormat.allCases {
            // XML can't hold every character.
            guard let written = try? format.write(value) else { continue }
            guard let read = try? format.read(written), read == value else {
                return "a value becomes another one by way of \(format.rawValue)"
            }
        }
        return nil
    }

    private static func manifest(_ bytes: [UInt8]) -> String? {
        guard let manifest = try? Manifest(propertyList: bytes) else { return nil }
        return manifest.applicationIdentifier.isEmpty ? "a manifest has no app" : nil
    }

    private static func head(_ bytes: [UInt8]) -> String? {
        // No fuzzer guesses a sum, so the right one is appended.
        guard let head = try? WrittenHead(decoding: bytes + SHA256.hash(data: bytes)) else { return nil }
        guard let again = try? WrittenHead(decoding: head.encoded()) else { return "a head can't be read again" }
        return again == head ? nil : "a head becomes another one"
    }

    private static func index(_ bytes: [UInt8]) -> String? {
        guard let parts = try? Index.decode(bytes) else { return nil }
        return (try? Index.decode(Index.encode(parts))) == parts ? nil : "an index becomes another one"
    }

    private static func segment(_ bytes: [UInt8]) -> String? {
        guard let segment = try? Segment(decoding: bytes, .plain) else { return nil }
        return (try? Segment(decoding: segment.encoded(), .plain)) == segment ? nil : "a segment becomes another one"
    }

    private static func vector(_ bytes: [UInt8]) -> String? {
        guard let vector = try? VectorSegment.decode(bytes) else { return nil }
        return (try? VectorSegment.decode(VectorSegment.encode(vector))) == vector
            ? nil : "a version vector becomes another one"
    }
}
