// SPDX-License-Identifier: Apache-2.0

import PropertyList
import Replication
import Testing

@Suite struct JoinTests {
    // MARK: Against the definition

    /// Every run of at most five steps by two devices with two keys, with clocks that agree or don't.
    @Test(arguments: [[0, 0], [0, 50], [50, 0]] as [[UInt64]])
    func `a join is what the definition says, in every small run`(skews: [UInt64]) {
        var walk = Walk(skews: skews)
        walk.go(Walk.Node(devices: [StoreState(), StoreState()], earlier: [StoreState()], writes: [0, 0]), depth: 5)
        #expect(walk.pairs > 5000)
        #expect(walk.failures == [])
    }

    @Test(arguments: [[0, 0], [0, 50], [50, 0]] as [[UInt64]])
    func `while every tombstone is kept, the order of joins does not matter`(skews: [UInt64]) {
        var walk = Walk(skews: skews)
        walk.dropsTombstones = false
        walk.joinsTriples = true
        walk.go(Walk.Node(devices: [StoreState(), StoreState()], earlier: [StoreState()], writes: [0, 0]), depth: 4)
        #expect(walk.triples > 4000)
        #expect(walk.failures == [])
    }

    /// Any three states of every run of two devices, each in turn as the local one.
    @Test(arguments: [[0, 0], [0, 50], [50, 0]] as [[UInt64]])
    func `of several states at once an entry lives if all that have seen it hold it, in any order`(skews: [UInt64]) {
        var walk = Walk(skews: skews)
        walk.joinsAtOnce = true
        walk.go(Walk.Node(devices: [StoreState(), StoreState()], earlier: [StoreState()], writes: [0, 0]), depth: 4)
        #expect(walk.triples > 1500)
        #expect(walk.failures == [])
    }

    @Test func `what was removed and forgotten takes no later value along, whatever is joined first`() {
        let (gone, late) = (entry(1, n: 1, 1, wall: 20), entry(2, n: 1, 2, wall: 10))
        let old = StoreState(entries: [k: gone], vector: VersionVector([Origin(bits: 1): 1]))
        let forgetful = StoreState(vector: VersionVector([Origin(bits: 1): 2]))
        let writer = StoreState(entries: [k: late], vector: VersionVector([Origin(bits: 2): 1]))
        // Joined one after the other, the later value loses and counts as seen, and then the greater one is removed.
        #expect(old.joined(writer).joined(forgetful).entries.isEmpty)
        for states in [
            [old, writer, forgetful], [writer, old, forgetful], [forgetful, old, writer], [old, forgetful, writer],
        ] {
            var joined = JoinedStates(states[0])
            joined.join(states[1])
            #expect(states[2].joined(joined.state(over: states[2])).entries == [k: late])
            joined.join(states[2])
            #expect(joined.state.entries == [k: late])
        }
    }

    /// Once the greatest of three is removed, or the two greatest are, the one that lost to them lives again.
    @Test(arguments: [[1], [1, 2], [2], [1, 2, 3], []] as [[UInt64]])
    func `of several that gave way the greatest that lives stays, in any order`(gone: [UInt64]) {
        let writers: [StoreState] = (1...3).map { origin in
            StoreState(
                entries: [k: entry(origin, n: 1, Int(origin), wall: 50 - origin)],
                vector: VersionVector([Origin(bits: origin): 1]))
        }
        let forgetful = StoreState(
            vector: VersionVector(Dictionary(uniqueKeysWithValues: gone.map { (Origin(bits: $0), UInt64(1)) })))
        let states = writers + [forgetful]
        let expected = Definition.join(states[0], states[1], states[2], states[3])
        for order in permutations([0, 1, 2, 3]) {
            var joined = JoinedStates(states[order[0]])
            for index in order[1...2] { joined.join(states[index]) }
            let last = states[order[3]]
            #expect(last.joined(joined.state(over: last)) == expected, "\(order)")
            joined.join(last)
            #expect(joined.state == expected && joined.state(over: StoreState()) == expected, "\(order)")
        }
    }

    @Test func `where some have forgotten a deletion, all end with the same answer all the same`() {
        let (removed, late) = (entry(1, n: 2, nil, wall: 20), entry(2, n: 1, 5, wall: 10))
        let vector = VersionVector([Origin(bits: 1): 2])
        let keeper = StoreState(entries: [k: removed], vector: vector)
        let forgetful = StoreState(vector: vector)
        let writer = StoreState(entries: [k: late], vector: VersionVector([Origin(bits: 2): 1]))
        #expect(keeper.joined(writer).entries[k] == removed)
        #expect(forgetful.joined(writer).entries[k] == late)
        // The devices agree in any order of joins.
        let one = keeper.joined(writer).joined(forgetful.joined(writer))
        let other = forgetful.joined(writer).joined(keeper.joined(writer))
        #expect(one == other)
    }

    // MARK: Clones

    @Test func `what others say of what is here shows whether its dot names two writes`() {
        let mine = entry(1, n: 2, 1, wall: 20)
        let here = StoreState(entries: [k: mine], vector: VersionVector([Origin(bits: 1): 2]))
        func isShared(_ there: Entry?, seen: UInt64, since: UInt64 = 0, present: UInt64 = 1) -> Bool {
            var there = StoreState(entries: there.map { [k: $0] } ?? [:])
            there.vector = VersionVector([Origin(bits: 1): seen, Origin(bits: 2): 1])
            let shared = Join.sharedOrigins(Origin(bits: present), here, in: there, writtenIn: since..<100)
            #expect(shared.isSubset(of: [Origin(bits: 1)]))
            return !shared.isEmpty
        }
        // Unchanged, not seen yet, replaced or removed: all of this is normal.
        #expect(!isShared(mine, seen: 2))
        #expect(!isShared(entry(2, n: 1, 5, wall: 10), seen: 1))
        #expect(!isShared(entry(2, n: 1, 5, wall: 30), seen: 2))
        #expect(!isShared(entry(2, n: 1, nil, wall: 30), seen: 2))
        // A dot that was never made here, which is normal only under another device's origin; another write with the
        // same dot.
        #expect(isShared(mine, seen: 3))
        #expect(!isShared(mine, seen: 3, present: 7))
        #expect(isShared(entry(1, n: 2, 7, wall: 21), seen: 2))
        // Seen, but replaced by a lesser entry or by none, unless the write is old.
        #expect(isShared(entry(2, n: 1, 5, wall: 10), seen: 2))
        #expect(isShared(entry(2, n: 1, 5, wall: 10), seen: 2, present: 7))
        #expect(isShared(nil, seen: 2))
        #expect(!isShared(nil, seen: 2, since: 21))
        // A delta doesn't mention unchanged entries.
        let seen = StoreState(vector: here.vector)
        #expect(
            Join.sharedOrigins(Origin(bits: 1), here, in: seen, writtenIn: 0..<100, isDelta: true).isEmpty)
    }

    // MARK: One key

    @Test(arguments: [true, false], [true, false])
    func `of two entries, what each has seen decides before the stamps`(seenHere: Bool, seenThere: Bool) {
        for (mine, theirs) in [(10, 20), (20, 10)] as [(UInt64, UInt64)] {
            let outcome = Join.outcome(
                here: entry(1, n: 1, 1, wall: mine).version,
                there: entry(2, n: 1, 2, wall: theirs).version,
                isSeenHere: seenHere,
                isSeenThere: seenThere
            )
            let expected: Join.Outcome =
                switch (seenHere, seenThere) {
                case (false, true): .take
                case (true, false): .keep
                case (true, true): .drop
                case (false, false): mine < theirs ? .take : .keep
                }
            #expect(outcome == expected)
        }
    }

    @Test func `a value of 2099 whose deletion was forgotten does not come back over what was written since`() {
        let far: UInt64 = 4_070_908_800_000
        let late = StoreState(entries: [k: entry(1, n: 1, 1, wall: far)], vector: VersionVector([Origin(bits: 1): 1]))
        // The tombstone, n 1, is forgotten, so the next write has no stamp to follow.
        let here = StoreState(
            entries: [k: entry(2, n: 2, 2, wall: 100)],
            vector: VersionVector([Origin(bits: 1): 1, Origin(bits: 2): 2])
        )
        #expect(here.joined(late) == here)
        #expect(late.joined(here) == here)
    }

    @Test func `an entry that only one side has lives unless the other has seen it`() {
        let version = entry(1, n: 1, 1).version
        #expect(Join.outcome(here: nil, there: nil, isSeenHere: false, isSeenThere: false) == .keep)
        #expect(Join.outcome(here: version, there: nil, isSeenHere: false, isSeenThere: false) == .keep)
        #expect(Join.outcome(here: version, there: nil, isSeenHere: false, isSeenThere: true) == .drop)
        #expect(Join.outcome(here: nil, there: version, isSeenHere: false, isSeenThere: false) == .take)
        #expect(Join.outcome(here: nil, there: version, isSeenHere: true, isSeenThere: false) == .keep)
    }

    // MARK: Clones

    @Test func `one dot with two values becomes the greater one on every device`() {
        let values: [Int?] = [nil, 0, 1, 7, 70]
        for (smaller, left) in values.enumerated() {
            for right in values[smaller...] {
                let vector = VersionVector([Origin(bits: 1): 1])
                let a = StoreState(entries: [k: entry(1, n: 1, left)], vector: vector)
                let b = StoreState(entries: [k: entry(1, n: 1, right)], vector: vector)
                #expect(a.joined(b) == b)
                #expect(b.joined(a) == b)
            }
        }
    }

    @Test func `one dot with two stamps becomes the later one, and one stamp with two dots the greater value`() {
        let vector = VersionVector([Origin(bits: 1): 1])
        let early = StoreState(entries: [k: entry(1, n: 1, 9, wall: 1)], vector: vector)
        let later = StoreState(entries: [k: entry(1, n: 1, 1, wall: 2)], vector: vector)
        #expect(early.joined(later) == later && later.joined(early) == later)

        for (left, right) in [(1, 2), (1, 1), (nil, nil)] as [(Int?, Int?)] {
            // Neither has seen the other's write: n counts per store, and the clones' stores differ.
            let a = StoreState(entries: [k: entry(1, n: 3, left)], vector: VersionVector())
            let b = StoreState(entries: [k: entry(1, n: 4, right)], vector: VersionVector())
            #expect(a.joined(b).entries[k] == b.entries[k])
            #expect(b.joined(a).entries[k] == b.entries[k])
        }
    }

    // MARK: The first download

    @Test func `what was written before the account arrived gives way to it, live or deleted, whatever the stamps`() {
        for theirs in [
            entry(2, n: 1, 5, wall: 1), entry(2, n: 1, nil, wall: 1), entry(2, n: 1, 5, wall: 1, provisional: true),
        ] {
            let here = LocalState(
                state: StoreState(
                    entries: [k: entry(1, n: 1, 1, wall: 1 << 40, provisional: true)],
                    vector: VersionVector([Origin(bits: 1): 1])
                ),
                provisional: [k]
            )
            let there = StoreState(entries: [k: theirs], vector: VersionVector([Origin(bits: 2): 1]))
            let plan = Join.plan(here, taking: there, isFirstDownload: true)
            #expect(plan.taken == [k: theirs] && plan.dropped.isEmpty)
            #expect(plan.vector == VersionVector([Origin(bits: 1): 1, Origin(bits: 2): 1]))
            // After the account has arrived, stamps decide again; provisional ones are less.
            let later = Join.plan(here, taking: there)
            #expect(later.taken == (theirs.stamp.isProvisional ? [:] : [k: theirs]))
        }
    }

    @Test func `what the account does not have stays, provisional, and is taken by others`() {
        let mine = entry(1, n: 1, 1, provisional: true)
        let here = LocalState(
            state: StoreState(entries: [k: mine], vector: VersionVector([Origin(bits: 1): 1])),
            provisional: [k]
        )
        let there = StoreState(
            entries: [l: entry(2, n: 1, 5)],
            vector: VersionVector([Origin(bits: 2): 1])
        )
        let plan = Join.plan(here, taking: there, isFirstDownload: true)
        #expect(Array(plan.taken.keys) == [l] && plan.dropped.isEmpty)
        #expect(there.joined(here.state).entries[k] == mine)
    }

    @Test func `a provisional write loses to an ordinary one that did not know of it, however late`() {
        let ordinary = StoreState(entries: [k: entry(1, n: 1, 1, wall: 1)], vector: VersionVector([Origin(bits: 1): 1]))
        let provisional = StoreState(
            entries: [k: entry(2, n: 1, 2, wall: 1 << 40, provisional: true)],
            vector: VersionVector([Origin(bits: 2): 1])
        )
        #expect(ordinary.joined(provisional).entries == ordinary.entries)
        #expect(provisional.joined(ordinary).entries == ordinary.entries)
    }

    @Test func `a plan that changes nothing says so`() {
        let state = StoreState(entries: [k: entry(1, n: 1, 1)], vector: VersionVector([Origin(bits: 1): 1]))
        #expect(Join.plan(state, taking: state).changesNothing(in: state.vector))
        #expect(Join.plan(state, taking: StoreState()).changesNothing(in: state.vector))
        let news = StoreState(vector: VersionVector([Origin(bits: 2): 1]))
        #expect(!Join.plan(state, taking: news).changesNothing(in: state.vector))
    }
}

// MARK: - Support

private let k = Key(unchecked: "k")
private let l = Key(unchecked: "l")

private func permutations(_ numbers: [Int]) -> [[Int]] {
    if numbers.count < 2 { return [numbers] }
    return numbers.flatMap { first in
        permutations(numbers.filter { $0 != first }).map { [first] + $0 }
    }
}

private func entry(
    _ origin: UInt64,
    n: UInt64,
    _ value: Int?,
    wall: UInt64 = 100,
    provisional: Bool = false
) -> Entry {
    Entry(
        stamp: Stamp(isProvisional: provisional, wall: wall, counter: 0, origin: Origin(bits: origin)),
        n: n,
        value: value.map { Value.integer(Int64($0)).encoded() }
    )
}

extension StoreState {
    fileprivate func joined(_ other: StoreState) -> StoreState {
        var state = self
        state.join(other)
        return state
    }
}

/// A state with some entries that were written here before the account arrived.
private struct LocalState: Joinable {
    var state: StoreState
    var provisional: Set<Key>

    var vector: VersionVector { state.vector }
    var keys: [Key] { state.keys }
    func version(of key: Key) -> EntryVersion? { state.version(of: key) }
    func entry(for key: Key) -> Entry? { state.entry(for: key) }
    func isProvisionalHere(_ key: Key) -> Bool { provisional.contains(key) }
}

/// The definition, word for word: version vectors are sets of dots, and an entry lives or doesn't.
private struct Definition {
    static func join(_ states: StoreState...) -> StoreState {
        let seen = states.map { dots($0.vector) }
        var entries: [Key: Entry] = [:]
        for key in Set(states.flatMap(\.entries.keys)) {
            let living = states.compactMap { $0.entries[key] }.filter { entry in
                zip(states, seen).allSatisfy { $0.entries[key] == entry || !$1.contains(entry.dot) }
            }
            entries[key] = living.max { $0.stamp < $1.stamp }
        }
        var vector: [Origin: UInt64] = [:]
        for dot in seen.reduce(into: Set<Dot>(), { $0.formUnion($1) }) {
            vector[dot.origin] = max(vector[dot.origin] ?? 0, dot.n)
        }
        return StoreState(entries: entries, vector: VersionVector(vector))
    }

    private static func dots(_ vector: VersionVector) -> Set<Dot> {
        Set(vector.dots.flatMap { dot in (1...dot.n).map { Dot(origin: dot.origin, n: $0) } })
    }
}

/// Walks through every run of two devices, and joins each new state with all earlier ones of the run.
private struct Walk {
    struct Node {
        var devices: [StoreState]
        var earlier: [StoreState]
        var writes: [UInt64]
    }

    let skews: [UInt64]
    var dropsTombstones = true
    var joinsTriples = false
    var joinsAtOnce = false
    var pairs = 0
    var triples = 0
    var failures: [String] = []

    init(skews: [UInt64]) { self.skews = skews }

    mutating func go(_ node: Node, depth: Int) {
        guard depth > 0, failures.count < 5 else { return }
        for device in 0..<2 {
            let state = node.devices[device]
            for key in [k, l] {
                // By symmetry, the first write may always be to the first key.
                if key == l, state.vector == VersionVector(), node.writes == [0, 0] { continue }
                for value in [Int(depth), nil] where value != nil || state.entries[key]?.value != nil {
                    if node.writes[device] < 2 { visit(written(value, key, device, node, depth), device, depth) }
                }
            }
            visit(node.with(state.joined(node.devices[1 - device]), at: device), device, depth)
            if dropsTombstones, state.entries.values.contains(where: { $0.value == nil }) {
                let kept = StoreState(entries: state.entries.filter { $0.value.value != nil }, vector: state.vector)
                visit(node.with(kept, at: device), device, depth)
            }
        }
    }

    private func written(_ value: Int?, _ key: Key, _ device: Int, _ node: Node, _ depth: Int) -> Node {
        var (state, node) = (node.devices[device], node)
        let origin = Origin(bits: UInt64(device + 1))
        node.writes[device] += 1
        let entry = Entry(
            stamp: Stamp(
                after: state.entries[key]?.stamp,
                wall: 100 - UInt64(depth) + skews[device],
                origin: origin,
                isProvisional: false
            ),
            n: node.writes[device],
            value: value.map { Value.integer(Int64($0)).encoded() }
        )
        state.entries[key] = entry
        state.vector.insert(entry.dot)
        return node.with(state, at: device)
    }

    private mutating func visit(_ node: Node, _ device: Int, _ depth: Int) {
        let state = node.devices[device]
        guard !node.earlier.contains(state) else { return }
        for other in node.earlier { check(state, other) }
        if joinsTriples { checkTriples(state, node.earlier) }
        if joinsAtOnce { checkAtOnce(state, node.earlier) }
        var node = node
        node.earlier.append(state)
        go(node, depth: depth - 1)
    }

    private mutating func check(_ a: StoreState, _ b: StoreState) {
        pairs += 1
        let joined = a.joined(b)
        if joined != Definition.join(a, b) { failures.append("not the definition: \(a) and \(b)") }
        if joined != b.joined(a) { failures.append("not commutative: \(a) and \(b)") }
        if joined.joined(b) != joined || joined.joined(a) != joined || joined.joined(joined) != joined {
            failures.append("what was joined changes something again: \(a) and \(b)")
        }
    }

    /// Checks that a device that has joined a whole state needs only the entries that have changed there since.
    private mutating func checkDelta(from before: StoreState, to after: StoreState, with own: StoreState) {
        guard before.entries.keys.allSatisfy({ after.entries[$0] != nil }) else { return }
        let here = before.joined(own)
        var (news, joined) = (after, here)
        news.entries = after.entries.filter { before.entries[$0.key] != $0.value }
        joined.join(news, isDelta: true)
        if joined != here.joined(after) { failures.append("a delta misleads: \(before), \(after) and \(own)") }
    }

    private mutating func checkAtOnce(_ a: StoreState, _ earlier: [StoreState]) {
        for (index, b) in earlier.enumerated() {
            for c in earlier[..<index] {
                triples += 1
                let expected = Definition.join(a, b, c)
                for (x, y, z) in [(a, b, c), (a, c, b), (b, c, a), (b, a, c), (c, a, b), (c, b, a)] {
                    var joined = JoinedStates(x)
                    joined.join(y)
                    if z.joined(joined.state(over: z)) != expected { failures.append("with \(z): \(x) and \(y)") }
                    joined.join(z)
                    if joined.state != expected || joined.state(over: StoreState()) != expected {
                        failures.append("at once: \(x), \(y) and \(z)")
                    }
                }
            }
        }
    }

    private mutating func checkTriples(_ a: StoreState, _ earlier: [StoreState]) {
        for b in earlier {
            for c in earlier {
                triples += 1
                checkDelta(from: a, to: a.joined(b), with: c)
                if a.joined(b).joined(c) != a.joined(b.joined(c)) {
                    failures.append("not associative: \(a), \(b) and \(c)")
                }
            }
        }
    }
}

extension Walk.Node {
    fileprivate func with(_ state: StoreState, at device: Int) -> Self {
        var node = self
        node.devices[device] = state
        return node
    }
}
