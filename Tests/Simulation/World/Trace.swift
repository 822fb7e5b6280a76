// SPDX-License-Identifier: Apache-2.0

/// What has happened: lines to read, and a hash that is equal for equal runs.
final class Trace {
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private let write: ((String) -> Void)?

    /// - Parameter write: called with the lines; `nil` if they are not wanted.
    init(_ write: ((String) -> Void)?) { self.write = write }

    /// Records an event.
    /// - Parameters:
    ///   - numbers: what distinguishes the event from others.
    ///   - line: made only if it is wanted.
    func note(_ time: UInt64, _ numbers: UInt64..., line: @autoclosure () -> String) {
        mix(time)
        for number in numbers { mix(number) }
        write?("\(Self.clock(time)) \(line())")
    }

    /// Adds lines without effect on the hash.
    func explain(_ lines: @autoclosure () -> [String]) {
        if let write { lines().forEach(write) }
    }

    private func mix(_ number: UInt64) {
        hash = (hash ^ number) &* 0x0000_0100_0000_01B3
        hash ^= hash >> 29
    }

    private static let start: UInt64 = Timeline.start

    /// The time since the beginning, as hours, minutes, seconds and milliseconds.
    private static func clock(_ time: UInt64) -> String {
        let total = (time - min(time, start)) / 1000
        let parts = [(total / 3_600_000, 2), (total / 60_000 % 60, 2), (total / 1000 % 60, 2)]
        return parts.map { pad($0.0, $0.1) }.joined(separator: ":") + "." + pad(total % 1000, 3)
    }

    private static func pad(_ number: UInt64, _ width: Int) -> String {
        let digits = String(number)
        return String(repeating: "0", count: max(0, width - digits.count)) + digits
    }
}

extension Timeline {
    /// The time at which every simulation begins: 2027-01-15, in microseconds since 1970.
    static let start: UInt64 = 1_800_000_000_000_000
}
