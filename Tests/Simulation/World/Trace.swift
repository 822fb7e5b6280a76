// SPDX-License-Identifier: Apache-2.0

/// What happened, as lines for people and as a number that is equal if everything was.
final class Trace {
    private(set) var hash: UInt64 = 0xCBF2_9CE4_8422_2325
    private let write: ((String) -> Void)?

    /// - Parameter write: takes the lines, if somebody wants them.
    init(_ write: ((String) -> Void)?) { self.write = write }

    /// Notes an event.
    /// - Parameters:
    ///   - numbers: what tells it from others.
    ///   - line: is made only if somebody wants it.
    func note(_ time: UInt64, _ numbers: UInt64..., line: @autoclosure () -> String) {
        mix(time)
        for number in numbers { mix(number) }
        write?("\(Self.clock(time)) \(line())")
    }

    /// Adds lines for people.
    func explain(_ lines: @autoclosure () -> [String]) {
        if let write { lines().forEach(write) }
    }

    private func mix(_ number: UInt64) {
        hash = (hash ^ number) &* 0x0000_0100_0000_01B3
        hash ^= hash >> 29
    }

    private static let start: UInt64 = Timeline.start

    /// Days, hours, minutes, seconds and milliseconds since the beginning.
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
    /// When every simulation begins: 2027-01-15.
    static let start: UInt64 = 1_800_000_000_000_000
}
