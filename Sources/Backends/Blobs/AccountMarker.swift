// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
package import Replication

/// Says that a remote holds an account. The device that created the account wrote it, and it never changes. If two
/// devices create an account at the same time, their two markers stand for one account.
package struct AccountMarker: Equatable {
    /// The account's identifier, which is random.
    package let identifier: Bits128
    /// When it was made, in microseconds since 1970 by that device's clock; only for display.
    package let time: UInt64

    /// The maximum length, in bytes.
    package static let limit = 4096

    package init(identifier: Bits128, time: UInt64) {
        self.identifier = identifier
        self.time = time
    }

    package init(decoding bytes: [UInt8]) throws(BlobFlaw) {
        var decoder = try Envelope.open(bytes, Envelope.marker)
        (identifier, time) = try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            let parts = (try decoder.bits128(), try decoder.varint())
            try decoder.finish()
            return parts
        }
    }

    package func encoded() -> [UInt8] {
        var encoder = Envelope.begin(Envelope.marker)
        encoder.bits128(identifier)
        encoder.varint(time)
        return Envelope.seal(encoder)
    }
}
