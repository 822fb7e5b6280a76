// SPDX-License-Identifier: Apache-2.0

internal import Crypto

/// How a device writes an account's blobs, and names and cuts what is in them.
package enum Wrapping: Sendable {
    /// As they are.
    case plain
    /// Under the account's key.
    case sealed(BlobKeys)

    /// A segment's bytes in a remote and its name.
    package func segment(_ content: [UInt8]) -> (bytes: [UInt8], name: [UInt8]) {
        switch self {
        case .plain: (content, Array(SHA256.hash(data: content).prefix(16)))
        case .sealed(let keys): SealedBlob.seal(segment: content, keys)
        }
    }

    /// The 16 bits by which a key of a store, as UTF-8, belongs to a bucket.
    package func bucketHash(of key: [UInt8]) -> Int {
        switch self {
        case .plain: SHA256.hash(data: key).prefix(2).reduce(0) { $0 << 8 | Int($1) }
        case .sealed(let keys): keys.bucketHash(of: key)
        }
    }
}
