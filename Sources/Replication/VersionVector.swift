// SPDX-License-Identifier: Apache-2.0

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
    ///
    /// The two are merged as sorted runs: inserted one by one, many origins that lie between each other would take
    /// quadratic time.
    public mutating func formUnion(_ other: VersionVector) {
        if isSuperset(of: other) { return }
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
