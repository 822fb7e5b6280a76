// SPDX-License-Identifier: Apache-2.0

// What may go. Nothing here is a matter of correctness: a head that goes although its device lives is put there again
// by it, and a segment that goes although somebody is about to name it by whoever names it. It is a matter of not
// doing that for nothing. Times of files say nothing, so that something was there for so long is known from having
// seen it there: each look adds the time since the look before, but a day at most, so that a clock that jumps, or a
// device that slept for a year, makes nothing old.

internal import BackendSupport
internal import PropertyList
internal import Replication

/// For how long what nobody needs was seen to lie there, in microseconds.
struct Observations: Equatable {
    /// When it was looked at last; 0: never.
    var time: UInt64 = 0
    /// Heads of others, as long as they did not change.
    var heads: [Bits128: UInt64] = [:]
    /// Segments that no head names.
    var segments: [Bits128: UInt64] = [:]
    /// Files that are not whole.
    var leftovers: [String: UInt64] = [:]

    static let day: UInt64 = 86_400_000_000
    /// Of each kind; they are kept in the cursor.
    static let most = 1024

    /// Adds a look.
    mutating func look(_ now: UInt64, heads: Set<Bits128>, segments: Set<Bits128>, leftovers: Set<String>) {
        let elapsed = time == 0 || now < time ? 0 : min(now - time, Self.day)
        time = now
        self.heads = Self.aged(self.heads, elapsed, present: heads)
        self.segments = Self.aged(self.segments, elapsed, present: segments)
        self.leftovers = Self.aged(self.leftovers, elapsed, present: leftovers)
    }

    private static func aged<Name: Hashable & Comparable>(
        _ ages: [Name: UInt64], _ elapsed: UInt64, present: Set<Name>
    ) -> [Name: UInt64] {
        var aged = ages.filter { present.contains($0.key) }.mapValues { $0 + elapsed }
        for name in present.sorted() where aged[name] == nil && aged.count < most { aged[name] = 0 }
        return aged
    }
}

/// Decides what may go.
enum Garbage {
    /// A head that is there.
    struct SeenHead {
        let name: String
        let digest: Bits128
        let origin: Origin
        /// All that it names is there.
        let isWhole: Bool
        /// All of it that can be read is in what this device has published.
        let isDominated: Bool
    }

    /// Which heads of others may go.
    static func heads(
        _ heads: [SeenHead], own: Origin, forgotten: Set<Origin>, ages: [Bits128: UInt64]
    ) -> [SeenHead] {
        heads.filter { head in
            // Its own process replaces it, or removes it once it writes under another origin.
            if head.origin == own { return false }
            // It may be the only place where something is.
            if !head.isDominated, Rule.knownHeads.isOn { return false }
            let age = ages[head.digest] ?? 0
            // The person has said that nobody will miss it. What has not arrived gets a week to.
            if forgotten.contains(head.origin) { return head.isWhole || age >= 7 * Observations.day }
            // A device that lives publishes when it has written, and once a day if others have. One that did neither
            // for a month is gone, or has nothing to say that is not said; if it was only away, it publishes anew.
            return age >= 30 * Observations.day || !Rule.headsStay.isOn
        }
    }

    /// Which segments may go, of those that no head names.
    static func segments(ages: [Bits128: UInt64]) -> [Bits128] {
        // Somebody may have written one and be about to publish the head, or the head be on its way here.
        ages.filter { $0.value >= 7 * Observations.day || !Rule.segmentsStay.isOn }.map(\.key).sorted()
    }

    /// Which files may go that are not whole.
    static func leftovers(ages: [String: UInt64]) -> [String] {
        // Nobody writes one file for a day.
        ages.filter { $0.value >= Observations.day }.map(\.key).sorted()
    }
}

/// The latest version that was seen of each head, within a day. A storage may leave a head out of a listing, or give an
/// older version of it, and what the latest one names is needed all the same.
struct LatestHeads {
    private var heads: [String: (head: Head, time: UInt64)] = [:]

    /// Notes what a look has found.
    mutating func note(_ found: some Sequence<FoundHead>, time: UInt64) {
        for found in found {
            if let latest = heads[found.name]?.head {
                if latest.sequence > found.head.sequence { continue }
                // What this one names is not known, and may be what the one before did.
                if !found.isWhole {
                    heads[found.name]?.time = time
                    continue
                }
            }
            heads[found.name] = (found.head, time)
        }
        heads = heads.filter { time < $0.value.time || time - $0.value.time < Observations.day }
    }

    /// Forgets a head that this device has removed.
    mutating func forget(_ name: String) { heads[name] = nil }

    /// What heads name, but for that of an origin.
    func segmentNames(besides origin: Origin?) -> Set<Bits128> {
        Set(heads.values.filter { $0.head.origin != origin }.flatMap(\.head.segmentNames))
    }
}

/// The segments that this process has put others in the place of. Nobody else needs them for long, and there may be
/// many.
struct Superseded {
    private struct Item {
        let name: Bits128
        let bytes: Int
        let time: UInt64
    }
    private var items: [Item] = []
    /// How long each segment is that this process has written.
    private var lengths: [Bits128: Int] = [:]

    /// Whoever has read the head before is given that long to read them.
    private static let grace: UInt64 = 120_000_000
    /// That much may always wait.
    private static let leastBytes = 256 << 10

    var isEmpty: Bool { items.isEmpty }

    mutating func noteLength(_ length: Int, of name: Bits128) { lengths[name] = length }

    /// Notes what a head has left.
    mutating func note(_ names: Set<Bits128>, now: Set<Bits128>, time: UInt64) {
        items.removeAll { now.contains($0.name) }
        let known = Set(items.map(\.name))
        for name in names.subtracting(now).subtracting(known).sorted() {
            items.append(Item(name: name, bytes: lengths[name] ?? 0, time: time))
        }
    }

    /// Takes out what may go now: after minutes, or before if what waits is more than what is published, so that
    /// writing without a pause never takes more than so many times the room.
    mutating func take(_ time: UInt64, published: Set<Bits128>, named: Set<Bits128>) -> [Bits128] {
        var waiting = items.reduce(0) { $0 + $1.bytes }
        let most = max(Self.leastBytes, published.reduce(0) { $0 + (lengths[$1] ?? 0) })
        var taken: [Bits128] = []
        items.removeAll { item in
            let isDue = time < item.time || time - item.time >= Self.grace || waiting > most
            // Somebody shares it; whoever leaves it last removes it.
            guard isDue, !named.contains(item.name), !published.contains(item.name) else { return false }
            waiting -= item.bytes
            taken.append(item.name)
            return true
        }
        let kept = Set(items.map(\.name)).union(published)
        lengths = lengths.filter { kept.contains($0.key) }
        return taken
    }
}

extension CanonicalEncoder {
    mutating func observations(_ observations: Observations) {
        varint(observations.time)
        for ages in [observations.heads, observations.segments] {
            count(ages.count)
            for (name, age) in ages.sorted(by: { $0.key < $1.key }) {
                bits128(name)
                varint(age)
            }
        }
        count(observations.leftovers.count)
        for (name, age) in observations.leftovers.sorted(by: { $0.key < $1.key }) {
            data(Array(name.utf8))
            varint(age)
        }
    }
}

extension CanonicalDecoder {
    mutating func observations() throws(CanonicalDecodingError) -> Observations {
        var observations = Observations(time: try varint())
        observations.heads = try ages()
        observations.segments = try ages()
        for _ in 0..<(try count(elementBytes: 2)) {
            let name = String(decoding: try data(), as: UTF8.self)
            observations.leftovers[name] = try varint()
        }
        return observations
    }

    private mutating func ages() throws(CanonicalDecodingError) -> [Bits128: UInt64] {
        var ages: [Bits128: UInt64] = [:]
        for _ in 0..<(try count(elementBytes: 17)) {
            let name = try bits128()
            ages[name] = try varint()
        }
        return ages
    }
}
