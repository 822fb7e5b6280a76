// SPDX-License-Identifier: Apache-2.0

// What orders and identifies writes among devices: origins, dots and stamps.

/// The random name under which a device writes. A device replaces it whenever another device might use it too.
///
/// It can't be the machine's identity (machine-id(5)), because a cloned disk has the same one.
public struct Origin: Hashable, Comparable, Sendable, CustomStringConvertible {
    /// The 64 random bits.
    public let bits: UInt64

    /// Makes an origin from 64 random bits.
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

    /// Compares the bits as unsigned numbers. The order is the same on all devices, and means nothing else.
    public static func < (a: Self, b: Self) -> Bool { a.bits < b.bits }
}

/// One write: the n-th that its origin made in a store. It never names two values.
public struct Dot: Hashable, Sendable {
    /// The writer's origin.
    public let origin: Origin
    /// The write's number among the origin's in this store: from 1, and growing, possibly with gaps.
    public let n: UInt64

    /// Makes a dot from its two parts.
    public init(origin: Origin, n: UInt64) {
        self.origin = origin
        self.n = n
    }
}

/// Decides between concurrent writes: the greater stamp wins. It is a hybrid logical clock.
///
/// A write's stamp is greater than that of the value it replaces, whatever the clocks say. So a clock that is years
/// ahead affects only the keys written with it.
public struct Stamp: Hashable, Comparable, Sendable {
    /// Whether the write was made before the account's values had arrived. A provisional stamp is less than every
    /// ordinary one.
    public let isProvisional: Bool
    /// Milliseconds since 1970 by the writer's clock, or what the replaced stamp requires; below ``wallLimit``.
    public let wall: UInt64
    /// Orders writes with the same ``wall``.
    public let counter: UInt16
    /// The writer's origin.
    public let origin: Origin

    /// 2^46 milliseconds since 1970, in the year 4199. Later times count as the last millisecond before it.
    public static let wallLimit: UInt64 = 1 << 46

    /// Makes a stamp from its parts.
    public init(isProvisional: Bool, wall: UInt64, counter: UInt16, origin: Origin) {
        self.isProvisional = isProvisional
        self.wall = wall
        self.counter = counter
        self.origin = origin
    }

    /// The stamp of a write at `wall` milliseconds that replaces an entry with the stamp `previous`. It is greater than
    /// `previous` even if the clock is behind.
    public init(after previous: Stamp?, wall: UInt64, origin: Origin, isProvisional: Bool) {
        var wall = min(wall, Self.wallLimit - 1)
        var counter: UInt16 = 0
        if Rule.successors.isOn, let previous, previous.wall >= wall {
            (wall, counter) = Self.successor(of: previous)
        }
        // A write after an ordinary one is ordinary: a provisional stamp would be less.
        self.init(
            isProvisional: isProvisional && Rule.provisional.isOn && previous?.isProvisional != false,
            wall: wall, counter: counter, origin: origin)
    }

    private static func successor(of previous: Stamp) -> (wall: UInt64, counter: UInt16) {
        let last = wallLimit - 1
        if previous.wall > last { return (last, .max) }
        if previous.counter < .max { return (previous.wall, previous.counter + 1) }
        // Nothing is greater than the last stamp; causality still orders the two writes.
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
