// SPDX-License-Identifier: Apache-2.0

// What orders and identifies writes among devices: origins, dots, stamps and version vectors.

/// The random name under which a device writes, until something makes it doubtful that nobody else does.
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

/// The dots that a state has taken in: for each origin all up to the greatest.
///
/// What a version vector has seen, and its state no longer holds, is gone.
public struct VersionVector: Equatable, Sendable {
    /// The greatest dot of each origin, in the order of origins.
    public private(set) var dots: [Dot]

    /// A version vector of these dots and all before them.
    public init(_ seen: [Origin: UInt64] = [:]) {
        dots = seen.map { Dot(origin: $0, n: $1) }.sorted { $0.origin < $1.origin }
    }

    private init(sorted dots: [Dot]) {
        self.dots = dots
    }

    /// The greatest n that was taken in of an origin; 0 if nothing was.
    public subscript(origin: Origin) -> UInt64 {
        let index = index(of: origin)
        return holds(origin, at: index) ? dots[index].n : 0
    }

    /// Whether the dot was taken in.
    public func contains(_ dot: Dot) -> Bool {
        self[dot.origin] >= dot.n
    }

    /// Takes a dot in, and all before it of the same origin.
    public mutating func insert(_ dot: Dot) {
        let index = index(of: dot.origin)
        if !holds(dot.origin, at: index) {
            if dot.n > 0 { dots.insert(dot, at: index) }
        } else if dots[index].n < dot.n {
            dots[index] = dot
        }
    }

    /// Takes in what another version vector has.
    public mutating func formUnion(_ other: VersionVector) {
        for dot in other.dots { insert(dot) }
    }

    /// Whether everything that `other` has taken in is here as well.
    public func isSuperset(of other: VersionVector) -> Bool {
        other.dots.allSatisfy(contains)
    }

    /// Without what `other` has taken in.
    public func subtracting(_ other: VersionVector) -> VersionVector {
        filter { !other.contains($0) }
    }

    /// Without the origins whose greatest dot does not satisfy a condition.
    public func filter(_ isIncluded: (Dot) throws -> Bool) rethrows -> VersionVector {
        try VersionVector(sorted: dots.filter(isIncluded))
    }

    /// Where an origin's dot is, or would be.
    private func index(of origin: Origin) -> Int {
        var (low, high) = (0, dots.count)
        while low < high {
            let middle = (low + high) / 2
            if dots[middle].origin < origin { low = middle + 1 } else { high = middle }
        }
        return low
    }

    private func holds(_ origin: Origin, at index: Int) -> Bool { index < dots.count && dots[index].origin == origin }
}
