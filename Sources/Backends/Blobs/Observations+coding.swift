// SPDX-License-Identifier: Apache-2.0

internal import BackendSupport
internal import PropertyList
internal import Replication

extension CanonicalEncoder {
    mutating func observations(_ observations: Observations) {
        varint(observations.time)
        for ages in [observations.heads, observations.forgotten, observations.segments] {
            count(ages.count)
            for (name, age) in ages.sorted(by: { $0.key < $1.key }) {
                bits128(name)
                varint(age)
            }
        }
        count(observations.leftovers.count)
        for (name, age) in observations.leftovers.sorted(by: { $0.key < $1.key }) {
            data(Array(name.utf8))
            varint(age)
        }
    }
}

extension CanonicalDecoder {
    /// - Parameter hasForgotten: whether the ages of heads since their devices were removed from the list are in it.
    mutating func observations(hasForgotten: Bool) throws(CanonicalDecodingError) -> Observations {
        var observations = Observations(time: try varint())
        observations.heads = try ages()
        if hasForgotten { observations.forgotten = try ages() }
        observations.segments = try ages()
        for _ in 0..<(try count(elementBytes: 2)) {
            let name = String(decoding: try data(), as: UTF8.self)
            observations.leftovers[name] = try varint()
        }
        return observations
    }

    private mutating func ages() throws(CanonicalDecodingError) -> [Bits128: UInt64] {
        var ages: [Bits128: UInt64] = [:]
        for _ in 0..<(try count(elementBytes: 17)) {
            let name = try bits128()
            ages[name] = try varint()
        }
        return ages
    }
}
