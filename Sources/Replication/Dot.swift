// SPDX-License-Identifier: Apache-2.0

// What orders and identifies writes among devices: origins, dots and stamps.

/// The random name under which a device writes, until another device might write under it, too.
///
/// It is never the machine's identity: a cloned disk or a restored backup has that as well.
public struct Origin: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The 64 random bits.
    public let bits: UInt64

    /// An origin of the given random bits.
    public init(bits: UInt64) {
        self.bits = bits
    }

    /// Reads the 16 hexadecimal digits of ``description``; `nil` for anything else.
    public init?(_ description: some StringProtocol) {
        let digits = description.utf8
        guard digits.count == 16, digits.allSatisfy({ (48...57).contains($0) || (97...102).contains($0) }),
            let bits = UInt64(description, radix: 16)
        else { return nil }
        self.bits = bits
    }

    /// 16 lower-case hexadecimal digits.
    public var description: String {
        let digits = String(bits, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// The order of the bits as a number; it has no meaning but to be the same everywhere.
    public static func < (a: Self, b: Self) -> Bool { a.bits < b.bits }
}

/// One write: the n-th that its origin made in a store. It never names two values.
public struct Dot: Hashable, Sendable {
    /// Who wrote.
    public let origin: Origin
    /// A number that grows with each write of this origin in this store, from 1.
    public let n: UInt64

    /// A dot of its two parts.
    public init(origin: Origin, n: UInt64) {
        self.origin = origin
        self.n = n
    }
}

/// Decides between writes that did not know of each other: the greater one wins.
///
/// A write's stamp is greater than that of the value that it replaces, whatever the clocks say; so a clock
/// that is years ahead harms nothing but what it touched.
public struct Stamp: Hashable, Comparable, Sendable {
    /// Made before the account's values had arrived; less than every stamp that is not.
    public let isProvisional: Bool
    /// Milliseconds since 1970, by the writer's clock or one more than what it replaced; below 2^46.
    public let wall: UInt64
    /// Orders what was written in one millisecond.
    public let counter: UInt16
    /// Who wrote.
    public let origin: Origin

    /// The first millisecond that no clock is believed to show (the year 4199).
    public static let wallLimit: UInt64 = 1 << 46

    /// A stamp of its parts.
    public init(isProvisional: Bool, wall: UInt64, counter: UInt16, origin: Origin) {
        self.isProvisional = isProvisional
        self.wall = wall
        self.counter = counter
        self.origin = origin
    }

    /// The stamp of a write at `wall` milliseconds that replaces what `previous` stamps.
    ///
    /// It follows `previous` even if the clock does not.
    public init(after previous: Stamp?, wall: UInt64, origin: Origin, isProvisional: Bool) {
        var wall = min(wall, Self.wallLimit - 1)
        var counter: UInt16 = 0
        if Rule.successors.isOn, let previous, previous.wall >= wall {
            (wall, counter) = Self.successor(of: previous)
        }
        // What follows an ordinary write is ordinary: it would not follow it otherwise.
        self.init(
            isProvisional: isProvisional && Rule.provisional.isOn && previous?.isProvisional != false,
            wall: wall, counter: counter, origin: origin)
    }

    private static func successor(of previous: Stamp) -> (wall: UInt64, counter: UInt16) {
        let last = wallLimit - 1
        if previous.wall > last { return (last, .max) }
        if previous.counter < .max { return (previous.wall, previous.counter + 1) }
        // After the last stamp of all there is none; causality orders the two writes all the same.
        return previous.wall < last ? (previous.wall + 1, 0) : (last, .max)
    }

    /// Provisional before ordinary, then by wall, counter and origin.
    public static func < (a: Self, b: Self) -> Bool {
        if a.isProvisional != b.isProvisional { return a.isProvisional }
        if a.wall != b.wall { return a.wall < b.wall }
        if a.counter != b.counter { return a.counter < b.counter }
        return a.origin < b.origin
    }
}
