// SPDX-License-Identifier: Apache-2.0

// All acknowledged writes, and what each of them knew of the others. From this the ledger tells, from outside, which
// values must be there in the end.

internal import Replication
internal import Sealing
internal import StoreEngine

/// A key in a store of an account.
struct Cell: Hashable, Comparable {
    let place: Int
    let store: Int
    let key: Int

    static func < (a: Self, b: Self) -> Bool { (a.place, a.store, a.key) < (b.place, b.store, b.key) }
}

/// An acknowledged write.
struct Write {
    /// A number that no other write has. It is also the value that was written.
    let number: Int64
    let device: Int
    let isRemoval: Bool
    let stamp: Stamp
    let dot: Dot
    /// What the writer had seen.
    let known: VersionVector
    /// Why the write may be gone; `nil` unless no rule could prevent that.
    var excuse: Excuse?
    /// The same, unless it turns out that a move of the account had read the write.
    var excuseUnlessRead: Excuse?
    /// Whether a remote has acknowledged the write.
    var isPublished = false
    /// Where accounts move: when each form of the account first had the write, in microseconds since 1970.
    var publications: [KeyIdentifier?: UInt64] = [:]

    var isProvisional: Bool { stamp.isProvisional }
    var isExcused: Bool { excuse != nil }
}

/// The writes of all devices.
struct Ledger {
    private(set) var writes: [Cell: [Write]] = [:]
    /// How keys are written.
    var names = Names()
    /// Whether writes may have got other origins, because two devices have shared one, or may believe so.
    var hasSharedOrigins = false
    /// How often something was excused besides the losses of writes.
    private var excuseCounts: [Excuse: Int] = [:]
    /// Whether nothing is excused, to find out whether a verdict depends on an excuse.
    private var isStrict = false
    private var dots: [Place: [Dot: Int64]] = [:]
    /// The dots that name two writes, because a device was copied while it ran.
    private var sharedDots: [Place: Set<Dot>] = [:]
    private var cells: [Int64: Cell] = [:]
    /// Values that were written without an account, and copied with their device. Both devices may sign in anywhere.
    private var copied: Set<Int64> = []

    private struct Place: Hashable {
        let place: Int
        let store: Int
    }

    /// - Parameter isShared: whether another device may have written under the same dot.
    /// - Returns: the rule that this write breaks; `nil` if it breaks none.
    mutating func add(_ write: Write, to cell: Cell, isShared: Bool) -> String? {
        writes[cell, default: []].append(write)
        if !write.isRemoval { cells[write.number] = cell }
        let place = Place(place: cell.place, store: cell.store)
        guard let other = dots[place, default: [:]].updateValue(write.number, forKey: write.dot) else { return nil }
        if !isShared { return "I9: the writes \(other) and \(write.number) have one dot" }
        sharedDots[place, default: []].insert(write.dot)
        excuse(.sharedDot)
        return nil
    }

    /// Whether the dot of a write names another one, too.
    func sharesDot(_ write: Write, in cell: Cell) -> Bool {
        sharedDots[Place(place: cell.place, store: cell.store)]?.contains(write.dot) ?? false
    }

    /// Moves a device's provisional writes into an account, where they get other dots.
    mutating func move(from cell: Cell, to other: Cell, of device: Int) {
        let moved = writes[cell, default: []].filter { $0.device == device }
        writes[cell]?.removeAll { $0.device == device }
        for write in moved { cells[write.number] = other }
        writes[other, default: []] += moved
    }

    /// Notes that a device was copied with what was written here.
    mutating func noteCopy(of cell: Cell) {
        copied.formUnion((writes[cell] ?? []).map(\.number))
    }

    mutating func update(_ cell: Cell, _ body: (inout Write) -> Void) {
        guard let place = writes.index(forKey: cell) else { return }
        for index in writes.values[place].indices { body(&writes.values[place][index]) }
    }

    /// Changes every write.
    mutating func updateAll(_ body: (inout Write) -> Void) { for cell in writes.keys.sorted() { update(cell, body) } }

    /// The writes to a store that satisfy a condition.
    func writes(_ place: Int, store: Int, where isIncluded: (Write) -> Bool) -> [Write] {
        writes.filter { $0.key.place == place && $0.key.store == store }.values.flatMap { $0.filter(isIncluded) }
    }

    /// The number of writes.
    var count: Int { writes.values.reduce(0) { $0 + $1.count } }

    /// How often each excuse has counted.
    var excused: [Excuse: Int] {
        writes.values.reduce(into: excuseCounts) { counts, writes in
            for excuse in writes.compactMap(\.excuse) { counts[excuse, default: 0] += 1 }
        }
    }

    /// Counts an excuse.
    mutating func excuse(_ excuse: Excuse, times: Int = 1) {
        if times > 0 { excuseCounts[excuse, default: 0] += times }
    }

    /// The cell in which a value was written.
    func cell(of number: Int64) -> Cell? { cells[number] }

    func write(_ number: Int64, in cell: Cell) -> Write? { writes[cell]?.first { $0.number == number } }

    // MARK: Verdicts

    /// Judges a version vector: each write that it covers must be there, or a write that came after it.
    /// - Parameter isShared: whether the dot of a write may name another one, too.
    func verdict(
        on state: StoreState, place: Int, store: Int, keys: Int, isShared: (Write) -> Bool = { _ in false }
    ) -> String? {
        for key in 0..<keys {
            let writes = writes[Cell(place: place, store: store, key: key)] ?? []
            guard let last = writes.filter({ state.vector.contains($0.dot) }).max(by: { $0.stamp < $1.stamp }) else {
                continue
            }
            if last.isRemoval || last.isProvisional || last.isExcused || isShared(last) { continue }
            let isSuperseded = writes.contains { $0.number != last.number && $0.known.contains(last.dot) }
            if !isSuperseded, state.entries[names.keys[key]] == nil {
                return "I8: the write \(last.number) was taken in, and is gone"
            }
        }
        return nil
    }

    /// Whether what is shown under a key breaks a rule.
    private enum Verdict {
        /// It breaks none, perhaps only because of an excuse.
        case kept(Excuse? = nil)
        case broken(String)
    }

    /// Judges what all devices show under a key in the end.
    /// - Parameter keepsTombstones: whether no device may have forgotten a tombstone.
    /// - Returns: the rule that it breaks; `nil` if it breaks none, or is excused.
    mutating func judge(_ cell: Cell, found: Int64?, keepsTombstones: Bool) -> String? {
        switch verdict(cell, found, keepsTombstones: keepsTombstones) {
        case .broken(let violation): return violation
        case .kept(nil) where !hasSharedOrigins: return nil
        case .kept(let reason):
            var strict = self
            strict.isStrict = true
            if case .broken = strict.verdict(cell, found, keepsTombstones: true) {
                excuse(reason ?? .ignoredOrigins)
            }
            return nil
        }
    }

    private func verdict(_ cell: Cell, _ found: Int64?, keepsTombstones: Bool) -> Verdict {
        let all = writes[cell] ?? []
        if let found {
            guard cells[found] == cell || !isStrict && copied.contains(found) else {
                return .broken("I12: \(name(cell)) shows what was written elsewhere")
            }
            guard let write = all.first(where: { $0.number == found }) else { return .kept(.copiedValue) }
            // Copies of a disk each have a default of their own, with one dot: one may be removed, the other published.
            let removals = all.filter { removal in
                removal.isRemoval && !isExcused(removal)
                    && (isStrict || !(removal.isProvisional && write.isProvisional))
            }
            if removals.contains(where: { isKnown(write, to: $0) }) {
                return .broken("I3: \(name(cell)) shows \(found), which was removed")
            }
            if isExcused(write) { return .kept(.shownLost) }
        }
        let ordinary = all.filter { !$0.isProvisional }
        if ordinary.isEmpty { return verdictOnProvisional(cell, all, found) }
        return verdictOnOrdinary(cell, ordinary, found, keepsTombstones: keepsTombstones)
    }

    private func verdictOnOrdinary(
        _ cell: Cell, _ ordinary: [Write], _ found: Int64?, keepsTombstones: Bool
    ) -> Verdict {
        // A write that knew of every other one, or has a greater stamp.
        let unbeaten = ordinary.first { write in
            !isExcused(write)
                && ordinary.allSatisfy {
                    $0.number == write.number || isKnown($0, to: write) || isLess($0.stamp, write.stamp)
                }
        }
        guard let unbeaten else { return .kept(.greatestLost) }
        if unbeaten.isRemoval {
            guard found != nil else { return .kept() }
            return keepsTombstones
                ? .broken("I4: the removal \(unbeaten.number) of \(name(cell)) lost") : .kept(.removedBack)
        }
        guard let found else { return .broken("I2: the write \(unbeaten.number) to \(name(cell)) was lost") }
        return found == unbeaten.number
            ? .kept() : .broken("I4: \(name(cell)) shows \(found) in place of \(unbeaten.number)")
    }

    private var ignoresOrigins: Bool { hasSharedOrigins && !isStrict }
    private func isExcused(_ write: Write) -> Bool { write.isExcused && !isStrict }

    /// Whether a write's author had seen another write to the same key. A clone may have written under the same dot,
    /// but a write that was seen has a lesser stamp, whatever its origin.
    private func isKnown(_ other: Write, to write: Write) -> Bool {
        write.known.contains(other.dot) && (!ignoresOrigins || isLess(other.stamp, write.stamp))
    }

    /// Whether a stamp loses to another, whatever their origins have become.
    private func isLess(_ a: Stamp, _ b: Stamp) -> Bool {
        ignoresOrigins ? a.withoutOrigin < b.withoutOrigin : a < b
    }

    private func verdictOnProvisional(_ cell: Cell, _ all: [Write], _ found: Int64?) -> Verdict {
        if found != nil { return .kept(.copiedDefault) }
        let last = Dictionary(all.map { ($0.device, $0) }) { $1 }.values.filter { !$0.isRemoval }
        if last.isEmpty { return .kept() }
        // A removal may be the greatest among defaults, too.
        if !isStrict, all.contains(where: \.isRemoval) { return .kept(.removedDefault) }
        let isLost = last.contains { !isExcused($0) }
        return isLost ? .broken("I2: the default of \(name(cell)) was lost") : .kept(.greatestLost)
    }

    private func name(_ cell: Cell) -> String { "k\(cell.key) of store \(cell.store) in account \(cell.place)" }
}

extension Stamp {
    /// The part of a stamp that a device keeps when it leaves the origin.
    var withoutOrigin: Stamp {
        Stamp(isProvisional: isProvisional, wall: wall, counter: counter, origin: Origin(bits: 0))
    }
}
