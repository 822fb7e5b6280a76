// SPDX-License-Identifier: Apache-2.0

internal import Crypto
internal import PropertyList
package import Replication

extension Bits128 {
    /// The first 128 bits of the SHA-256 of bytes.
    package init(digestOf bytes: [UInt8]) {
        self.init(prefixOf: SHA256.bytes(of: bytes[...]))
    }
}

extension SHA256 {
    /// The 32 bytes of the digest.
    static func bytes(of bytes: ArraySlice<UInt8>) -> [UInt8] {
        var hash = SHA256()
        bytes.withUnsafeBytes { hash.update(bufferPointer: $0) }
        return Array(hash.finalize())
    }
}
