// SPDX-License-Identifier: Apache-2.0

// What may go. Nothing here is a matter of correctness: a head that goes although its device lives is put there again
// by it, and a segment that goes although somebody is about to name it by whoever names it. It is a matter of not
// doing that for nothing. Times of files say nothing, so that something was there for so long is known from having
// seen it there: each look adds the time since the look before, but a day at most, so that a clock that jumps, or a
// device that slept for a year, makes nothing old.

/// For how long what nobody needs was seen to lie there, in microseconds.
package struct Observations: Equatable, Sendable {
    /// When it was looked at last; 0: never.
    package var time: UInt64 = 0
    /// Heads of others, as long as they did not change.
    package var heads: [Bits128: UInt64] = [:]
    /// Segments that no head names.
    package var segments: [Bits128: UInt64] = [:]
    /// Files that are not whole.
    package var leftovers: [String: UInt64] = [:]

    static let day = Retention.day
    /// Of each kind; they are kept in the cursor.
    static let most = 1024

    /// Those of a device that has not looked yet.
    package init(time: UInt64 = 0) { self.time = time }

    /// Adds a look.
    package mutating func look(_ now: UInt64, heads: Set<Bits128>, segments: Set<Bits128>, leftovers: Set<String>) {
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
    /// Which heads may go.
    /// - Parameters:
    ///   - joined: the digests of those that were joined.
    ///   - published: what this device has published.
    static func heads(
        _ heads: [SeenHead], own: Origin, forgotten: Set<Origin>, ages: [Bits128: UInt64],
        joined: Set<Bits128>, published: SeenHead?
    ) -> [SeenHead] {
        heads.filter { head in
            // Its own process replaces it, or removes it once it writes under another origin.
            if head.origin == own { return false }
            // It may be the only place where something is. What was read after the pull was not joined; of what was
            // joined, all has to be where others find it.
            let isJoined = joined.contains(head.digest) || !head.isWhole
            let isKnown = isJoined && published?.states.dominate(head.states) == true
            if !isKnown, Rule.knownHeads.isOn { return false }
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
struct LatestHeads: Sendable {
    private var heads: [String: Version] = [:]

    private struct Version {
        let sequence: UInt64
        let origin: Origin
        let segments: Set<Bits128>
        var time: UInt64
    }

    /// Notes what a look has found.
    mutating func note(_ found: [SeenHead], time: UInt64) {
        for head in found {
            if let latest = heads[head.name] {
                if latest.sequence > head.sequence { continue }
                // What this one names is not known, and may be what the one before did.
                if !head.isWhole {
                    heads[head.name]?.time = time
                    continue
                }
            }
            heads[head.name] = Version(
                sequence: head.sequence, origin: head.origin, segments: head.segments, time: time)
        }
        heads = heads.filter { time < $0.value.time || time - $0.value.time < Observations.day }
    }

    /// Forgets a head that this device has removed.
    mutating func forget(_ name: String) { heads[name] = nil }

    /// What heads name, but for that of an origin.
    func segments(besides origin: Origin?) -> Set<Bits128> {
        Set(heads.values.filter { $0.origin != origin }.flatMap(\.segments))
    }
}

/// The segments that this process has put others in the place of. There may be many.
struct Superseded: Sendable {
    private struct Item {
        let name: Bits128
        let bytes: Int
        let time: UInt64
    }
    private var items: [Item] = []
    /// How long each segment is that this process has written.
    private var lengths: [Bits128: Int] = [:]

    /// Whoever has read the head before is given that long to read them, where all see the same.
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

    /// Forgets segments that are not there any more.
    mutating func keep(_ present: Set<Bits128>) { items.removeAll { !present.contains($0.name) } }

    /// Takes out what may go now: after minutes, or before if what waits is more than what is published, so that
    /// writing without a pause never takes more than so many times the room.
    /// - Parameter replicatesSeparately: a head that names one may still be on its way here. Time frees none then: they
    ///   are left to ``Garbage/segments(ages:)``.
    mutating func take(
        _ time: UInt64, published: Set<Bits128>, named: Set<Bits128>, replicatesSeparately: Bool
    ) -> [Bits128] {
        var waiting = items.reduce(0) { $0 + $1.bytes }
        let most = max(Self.leastBytes, published.reduce(0) { $0 + (lengths[$1] ?? 0) })
        var taken: [Bits128] = []
        items.removeAll { item in
            let isOver = !replicatesSeparately && (time < item.time || time - item.time >= Self.grace)
            let isDue = isOver || waiting > most
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

/// What is there, for garbage collection.
package struct Remains {
    /// The heads of the account.
    package let heads: [SeenHead]
    /// No other heads are there, and each could be made out whole: a segment that none of them names is named by none.
    package let areAllHeads: Bool
    /// The segments.
    package let segments: Set<Bits128>
    /// Files that are not whole, and damaged segments.
    package let leftovers: Set<String>

    /// Remains of their parts.
    package init(heads: [SeenHead], areAllHeads: Bool, segments: Set<Bits128>, leftovers: Set<String>) {
        (self.heads, self.areAllHeads) = (heads, areAllHeads)
        (self.segments, self.leftovers) = (segments, leftovers)
    }
}

/// What one process knows of what may go.
package struct GarbageMemory: Sendable {
    /// For how long what nobody needs was seen to lie there.
    package private(set) var observations = Observations()
    private var latest = LatestHeads()
    private var superseded = Superseded()

    /// That of a process that knows nothing.
    package init() {}

    /// What goes once somebody has collected garbage.
    package struct Going {
        package let heads: [SeenHead]
        package let segments: [Bits128]
        package let leftovers: [String]
    }

    /// Goes on from what the process before this one has seen.
    package mutating func resume(_ observations: Observations) {
        if self.observations.time == 0 { self.observations = observations }
    }

    /// Notes the heads that a pull has found.
    package mutating func note(_ heads: [SeenHead], time: UInt64) { latest.note(heads, time: time) }

    /// Forgets a head that this device has removed.
    package mutating func forget(_ head: String) { latest.forget(head) }

    /// Notes how long a segment is.
    package mutating func noteLength(_ length: Int, of segment: Bits128) {
        superseded.noteLength(length, of: segment)
    }

    /// Notes which segments a head of this device names in the place of others.
    package mutating func noteReplaced(_ former: Set<Bits128>, by present: Set<Bits128>, time: UInt64) {
        superseded.note(former, now: present, time: time)
    }

    /// Decides what may go.
    /// - Parameters:
    ///   - joined: the digests of the heads that were joined.
    ///   - published: what this device has published.
    package mutating func look(
        at remains: Remains, for request: GarbageCollection, joined: Set<Bits128>, published: SeenHead?
    ) -> Going {
        let others = remains.heads.filter { $0.origin != request.origin }
        // A head that can't be read, or is of another account, names nobody knows what.
        var unnamed = remains.areAllHeads ? remains.segments : []
        for head in remains.heads where Rule.namedSegments.isOn { unnamed.subtract(head.segments) }
        unnamed.subtract(published?.segments ?? [])
        superseded.keep(remains.segments)
        observations.look(
            request.time, heads: Set(others.map(\.digest)), segments: unnamed, leftovers: remains.leftovers)
        return Going(
            heads: Garbage.heads(
                others, own: request.origin, forgotten: request.forgottenOrigins, ages: observations.heads,
                joined: joined, published: published),
            segments: Garbage.segments(ages: observations.segments),
            leftovers: Garbage.leftovers(ages: observations.leftovers))
    }

    /// Takes out what may go of what this process has put others in the place of.
    /// - Parameters:
    ///   - heads: those that are there.
    ///   - traits: those of the backend.
    package mutating func takeReplaced(
        _ time: UInt64, heads: [SeenHead], published: SeenHead?, traits: BackendTraits
    ) -> [Bits128] {
        if superseded.isEmpty { return [] }
        let own = published?.origin
        let others = heads.filter { $0.origin != own }.flatMap(\.segments)
        let named = latest.segments(besides: own).union(others)
        return superseded.take(
            time, published: published?.segments ?? [], named: Rule.namedSegments.isOn ? named : [],
            replicatesSeparately: traits.replicatesSeparately && Rule.replacedStay.isOn)
    }

    /// Whether anything waits to be taken out.
    package var hasReplaced: Bool { !superseded.isEmpty }
}
