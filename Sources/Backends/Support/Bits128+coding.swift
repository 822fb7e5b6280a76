// SPDX-License-Identifier: Apache-2.0

package import PropertyList
package import Replication

extension CanonicalEncoder {
    package mutating func bits128(_ bits: Bits128) {
        fixed64(bits.high)
        fixed64(bits.low)
    }
}

extension CanonicalDecoder {
    package mutating func bits128() throws(CanonicalDecodingError) -> Bits128 {
        Bits128(high: try fixed64(), low: try fixed64())
    }
}
