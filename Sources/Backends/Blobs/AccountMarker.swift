// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
package import Replication

/// Says that a place holds an account. Written once, by the device that made the account, and never changed; two
/// devices that make one at once leave two, which are one account.
package struct AccountMarker: Equatable {
    /// Random.
    package let identifier: Bits128
    /// When it was made, in microseconds since 1970 by that device's clock; for people.
    package let time: UInt64

    /// No marker is longer.
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
