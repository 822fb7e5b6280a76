// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication

/// Says that a place holds an account. Written once, by the device that made the account, and never changed; two
/// devices that make one at once leave two, which are one account.
struct AccountMarker: Equatable {
    /// Random.
    let identifier: Bits128
    /// When it was made, in microseconds since 1970 by that device's clock; for people.
    let time: UInt64

    /// No marker is longer.
    static let limit = 4096

    init(identifier: Bits128, time: UInt64) {
        self.identifier = identifier
        self.time = time
    }

    init(decoding bytes: [UInt8]) throws(BlobFlaw) {
        var decoder = try Envelope.open(bytes, Envelope.marker)
        (identifier, time) = try BlobFlaw.reading { () throws(CanonicalDecodingError) in
            let parts = (try decoder.bits128(), try decoder.varint())
            try decoder.finish()
            return parts
        }
    }

    func encoded() -> [UInt8] {
        var encoder = Envelope.begin(Envelope.marker)
        encoder.bits128(identifier)
        encoder.varint(time)
        return Envelope.seal(encoder)
    }
}
