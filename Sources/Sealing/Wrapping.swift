// SPDX-License-Identifier: Apache-2.0

internal import Crypto

/// How a device encodes an account's blobs, and how it names segments and assigns keys to buckets.
package enum Wrapping: Sendable {
    /// Unencrypted.
    case plain
    /// Encrypted under the account's key.
    case sealed(BlobKeys)

    /// Returns a segment's bytes in a remote, and its name.
    package func segment(_ content: [UInt8]) -> (bytes: [UInt8], name: [UInt8]) {
        switch self {
        case .plain: (content, Array(SHA256.hash(data: content).prefix(16)))
        case .sealed(let keys): SealedBlob.seal(segment: content, keys)
        }
    }

    /// Returns the 16 bits that assign a store's key, as UTF-8, to a bucket.
    package func bucketHash(of key: [UInt8]) -> Int {
        switch self {
        case .plain: SHA256.hash(data: key).prefix(2).reduce(0) { $0 << 8 | Int($1) }
        case .sealed(let keys): keys.bucketHash(of: key)
        }
    }
}
