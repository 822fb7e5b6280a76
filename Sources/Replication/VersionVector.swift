// SPDX-License-Identifier: Apache-2.0

/// The dots that a state has taken in: for each origin, all up to the greatest.
///
/// An entry that the version vector covers and the state no longer holds is gone.
public struct VersionVector: Equatable, Sendable {
    /// The greatest dot of each origin, in the order of origins.
    public private(set) var dots: [Dot]

    /// Makes a version vector that covers, for each origin, all dots up to a number.
    public init(_ seen: [Origin: UInt64] = [:]) {
        dots = seen.map { Dot(origin: $0, n: $1) }.sorted { $0.origin < $1.origin }
    }

    /// Makes a version vector of the greatest dot of each of some origins, in any order.
    package init(greatest dots: [Dot]) {
        self.init(sorted: dots.filter { $0.n > 0 }.sorted { $0.origin < $1.origin })
    }

    private init(sorted dots: [Dot]) {
        self.dots = dots
    }

    /// The greatest n of an origin that the version vector covers; 0 if none.
    public subscript(origin: Origin) -> UInt64 {
        let index = index(of: origin)
        return holds(origin, at: index) ? dots[index].n : 0
    }

    /// Whether the version vector covers a dot.
    public func contains(_ dot: Dot) -> Bool {
        self[dot.origin] >= dot.n
    }

    /// Adds a dot, and all earlier ones of the same origin.
    public mutating func insert(_ dot: Dot) {
        let index = index(of: dot.origin)
        if !holds(dot.origin, at: index) {
            if dot.n > 0 { dots.insert(dot, at: index) }
        } else if dots[index].n < dot.n {
            dots[index] = dot
        }
    }

    /// Adds the dots of another version vector. It merges two sorted runs, because inserting dots one by one would take
    /// quadratic time.
    public mutating func formUnion(_ other: VersionVector) {
        if isSuperset(of: other) { return }
        if dots.isEmpty {
            // The memory is shared.
            dots = other.dots
            return
        }
        var union: [Dot] = []
        union.reserveCapacity(dots.count + other.dots.count)
        var rest = dots[...]
        for dot in other.dots {
            while let next = rest.first, next.origin < dot.origin {
                union.append(next)
                rest.removeFirst()
            }
            if let own = rest.first, own.origin == dot.origin {
                union.append(own.n < dot.n ? dot : own)
                rest.removeFirst()
            } else {
                union.append(dot)
            }
        }
        union.append(contentsOf: rest)
        dots = union
    }

    /// Whether this covers every dot that `other` covers.
    public func isSuperset(of other: VersionVector) -> Bool {
        other.dots.allSatisfy(contains)
    }

    /// The origins of which this covers more than `other`, with this version vector's numbers.
    public func subtracting(_ other: VersionVector) -> VersionVector {
        filter { !other.contains($0) }
    }

    /// The origins whose greatest dot satisfies a condition.
    public func filter(_ isIncluded: (Dot) throws -> Bool) rethrows -> VersionVector {
        try VersionVector(sorted: dots.filter(isIncluded))
    }

    /// The index of an origin's dot, or where it would be inserted.
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
