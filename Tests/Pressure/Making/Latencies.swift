// SPDX-License-Identifier: Apache-2.0

/// A histogram of latencies, with a count for each 1/32 of an octave, which is within 3 %.
public struct Latencies: Sendable {
    private var counts = [Int](repeating: 0, count: 32 * 40)
    /// The number of calls.
    public private(set) var count = 0

    /// Makes an empty histogram.
    public init() {}

    /// Adds a call.
    public mutating func add(_ duration: Duration) {
        let (seconds, attoseconds) = duration.components
        add(nanoseconds: seconds * 1_000_000_000 + attoseconds / 1_000_000_000, times: 1)
    }

    private mutating func add(nanoseconds: Int64, times: Int) {
        counts[Self.bucket(UInt64(max(32, nanoseconds)))] += times
        count += times
    }

    private static func bucket(_ nanoseconds: UInt64) -> Int {
        let exponent = 63 - nanoseconds.leadingZeroBitCount
        return min((exponent - 5) * 32 + Int(nanoseconds >> UInt64(exponent - 5)) & 31, 32 * 40 - 1)
    }

    private static func bound(_ bucket: Int) -> Double {
        Double((32 + bucket % 32 + 1) << (bucket / 32)) / 1000
    }

    /// The time that so many of a thousand calls don't exceed, in µs; infinite without calls.
    public func permille(_ part: Int) -> Double {
        var left = (count * part + 999) / 1000
        for (bucket, number) in counts.enumerated() {
            left -= number
            if left <= 0 { return Self.bound(bucket) }
        }
        return .infinity
    }

    /// Adds the calls of another histogram.
    public mutating func add(_ other: Latencies) {
        for bucket in counts.indices { counts[bucket] += other.counts[bucket] }
        count += other.count
    }

    /// The histogram on one line, for another process.
    public var text: String {
        counts.enumerated().filter { $0.element > 0 }.map { "\($0.offset):\($0.element)" }.joined(separator: " ")
    }

    /// Reads a histogram from a line, and ignores what is invalid.
    public init(text: String) {
        for pair in text.split(separator: " ") {
            let numbers = pair.split(separator: ":").compactMap { Int($0) }
            guard numbers.count == 2, counts.indices.contains(numbers[0]) else { continue }
            counts[numbers[0]] += numbers[1]
            count += numbers[1]
        }
    }
}
