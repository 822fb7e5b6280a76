// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Testing

@Suite struct LimitsTests {
    @Test func `the bus sees the limits under their names`() {
        let pairs = Limits.standard.namedValues
        #expect(pairs.map(\.name) == ["keys", "total-bytes", "value-bytes", "key-length", "depth"])
        #expect(pairs.map(\.value) == [1024, 1_048_576, 1_048_576, 128, 16])
    }
}
