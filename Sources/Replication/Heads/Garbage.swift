// SPDX-License-Identifier: Apache-2.0

// Which files of a remote may be removed. Correctness doesn't depend on it: a device whose head is removed writes it
// again, and so does a device that is about to name a segment that is removed. The rules here avoid that work.
//
// Times of files prove nothing. So an age is the time during which polls have seen a file: each poll adds the time
// since the previous one, at most a day, so that neither a clock that jumps nor a device that slept for a year makes a
// file old.

/// The ages of files that nobody may need, in microseconds.
package struct Observations: Equatable, Sendable {
    /// The time of the last poll; 0 if there was none.
    package var time: UInt64 = 0
    /// Other devices' heads, also those that can't be read, by digest: for how long each has not changed.
    package var heads: [Bits128: UInt64] = [:]
    /// Those of devices that the user has removed from the list: for how long each has not changed since.
    package var forgotten: [Bits128: UInt64] = [:]
    /// Segments that no head names.
    package var segments: [Bits128: UInt64] = [:]
    /// Incomplete files.
    package var leftovers: [String: UInt64] = [:]

    static let day = Retention.day
    /// The most files of each kind, because the cursor holds these ages.
    static let most = 1024

    /// Makes the observations of a device that has not polled yet.
    package init(time: UInt64 = 0) { self.time = time }

    /// Adds a poll's observations.
    package mutating func look(
        _ now: UInt64, heads: Set<Bits128>, forgotten: Set<Bits128>, segments: Set<Bits128>, leftovers: Set<String>
    ) {
        let elapsed = time == 0 || now < time ? 0 : min(now - time, Self.day)
        time = now
        self.heads = Self.aged(self.heads, elapsed, present: heads)
        self.forgotten = Self.aged(self.forgotten, elapsed, present: forgotten)
        self.segments = Self.aged(self.segments, elapsed, present: segments)
        self.leftovers = Self.aged(self.leftovers, elapsed, present: leftovers)
    }

    private static func aged<Name: Hashable & Comparable>(
        _ ages: [Name: UInt64], _ elapsed: UInt64, present: Set<Name>
    ) -> [Name: UInt64] {
        var aged = ages.filter { present.contains($0.key) }.mapValues { age in
            age.addingReportingOverflow(elapsed).overflow ? .max : age + elapsed
        }
        for name in present.sorted() where aged[name] == nil && aged.count < most { aged[name] = 0 }
        return aged
    }

    /// Whether a head has not changed for so long that it may be removed.
    /// - Parameter isRead: whether everything in it could be read.
    func isOld(_ head: Bits128, isRead: Bool) -> Bool {
        // The user has removed the device from the list. A server may still answer with an earlier version of the head
        // than the last one, and what could not be read may still arrive.
        if forgotten[head] ?? 0 >= (isRead ? 1 : 7) * Self.day { return true }
        // A device in use publishes its writes, and once a day if others have written. One that did neither for a month
        // is gone or has nothing new, and what has not arrived by then never will. If it was only away, it publishes
        // again.
        return heads[head] ?? 0 >= 30 * Self.day
    }
}

/// Decides which files may be removed.
enum Garbage {
    /// The heads that may be removed.
    /// - Parameters:
    ///   - joined: the digests of the heads that were joined.
    ///   - unread: the digests of the states that could not be read.
    ///   - published: this device's own head.
    static func heads(
        _ heads: [SeenHead], own: Origin, observations: Observations, joined: Set<Bits128>, unread: Set<Bits128>,
        published: SeenHead?
    ) -> [SeenHead] {
        heads.filter { head in
            // The device replaces its own head, or removes it once it writes under another origin.
            if head.origin == own { return false }
            let read = head.states.filter { !unread.contains($0.value.digest) }
            let isRead = head.isWhole && read.count == head.states.count
            // A head may hold the only copy of something. So this device must have joined it, or what can be read of
            // it, and published the result.
            let isJoined = joined.contains(head.digest) || !isRead
            let isKnown = isJoined && published?.states.dominate(read) == true
            if !isKnown, Rule.knownHeads.isOn { return false }
            return observations.isOld(head.digest, isRead: isRead) || !Rule.headsStay.isOn
        }
    }

    /// The heads that may be removed, of those that can't be read. They may still be arriving, or be repaired by the
    /// remote's operator.
    static func unreadable(_ heads: [HeadFile], observations: Observations) -> [HeadFile] {
        heads.filter { observations.isOld($0.digest, isRead: false) }
    }

    /// The segments that may be removed, of those that no head names.
    static func segments(ages: [Bits128: UInt64]) -> [Bits128] {
        // Another device may be about to publish a head that names it, or that head may still be on its way.
        ages.filter { $0.value >= 7 * Observations.day || !Rule.segmentsStay.isOn }.map(\.key).sorted()
    }

    /// The incomplete files that may be removed.
    static func leftovers(ages: [String: UInt64]) -> [String] {
        // No device takes a day to write a file.
        ages.filter { $0.value >= Observations.day }.map(\.key).sorted()
    }
}

/// The latest version of each head seen within a day. A storage may omit a head from a listing or return an older
/// version, and the segments that the latest version names are still needed.
struct LatestHeads: Sendable {
    private var heads: [String: Version] = [:]

    private struct Version {
        let sequence: UInt64
        let origin: Origin
        let segments: Set<Bits128>
        var time: UInt64
    }

    /// Notes the heads that a poll has found.
    mutating func note(_ found: [SeenHead], time: UInt64) {
        for head in found {
            if let latest = heads[head.name] {
                if latest.sequence > head.sequence { continue }
                // An unreadable version may name the same segments as the one before.
                if !head.isWhole {
                    heads[head.name]?.time = time
                    continue
                }
            }
            heads[head.name] = Version(
                sequence: head.sequence, origin: head.origin, segments: head.segments, time: time)
        }
        heads = heads.filter { time < $0.value.time || time - $0.value.time < Observations.day }
        forgetMany(time)
    }

    /// The most heads, and the most segments of heads, that are remembered besides those of the last poll.
    static let (mostHeads, mostSegments) = (1024, 128 << 10)

    /// Forgets the oldest of too many heads, because a remote can show others at each poll. Segments that no head names
    /// stay for a week all the same.
    private mutating func forgetMany(_ time: UInt64) {
        var room = (heads: Self.mostHeads, segments: Self.mostSegments)
        for (name, version) in heads.sorted(by: { ($0.value.time, $0.key) > ($1.value.time, $1.key) })
        where version.time != time {
            room = (room.heads - 1, room.segments - version.segments.count)
            if room.heads < 0 || room.segments < 0 { heads[name] = nil }
        }
    }

    /// Forgets a head that this device has removed.
    mutating func forget(_ name: String) { heads[name] = nil }

    /// The segments that heads name, except the head of an origin.
    func segments(besides origin: Origin?) -> Set<Bits128> {
        Set(heads.values.filter { $0.origin != origin }.flatMap(\.segments))
    }
}

/// The segments that this process has replaced. There may be many.
struct Superseded: Sendable {
    private struct Item {
        let name: Bits128
        let bytes: Int
        let time: UInt64
        /// How many polls have read the heads since then.
        var looks = 0
    }
    private var items: [Item] = []
    /// The lengths of the segments that this process has written.
    private var lengths: [Bits128: Int] = [:]

    /// On a server, how long a device that has read the previous head has to read its segments, in microseconds.
    private static let grace: UInt64 = 120_000_000
    /// On a server, how many polls must have found the segment in no head of another device. A server may answer with
    /// an old version of a head, and what another device wrote last may name the segment.
    private static let leastLooks = 3
    /// How many bytes of replaced segments may stay for the whole time.
    private static let leastBytes = 256 << 10

    var isEmpty: Bool { items.isEmpty }

    mutating func noteLength(_ length: Int, of name: Bits128) { lengths[name] = length }

    /// Notes which segments a head no longer names.
    mutating func note(_ names: Set<Bits128>, now: Set<Bits128>, time: UInt64) {
        items.removeAll { now.contains($0.name) }
        let known = Set(items.map(\.name))
        for name in names.subtracting(now).subtracting(known).sorted() {
            items.append(Item(name: name, bytes: lengths[name] ?? 0, time: time))
        }
    }

    /// Notes that a poll has read the heads.
    mutating func noteLook() { for index in items.indices { items[index].looks += 1 } }

    /// Forgets segments that are gone from the remote.
    mutating func keep(_ present: Set<Bits128>) { items.removeAll { !present.contains($0.name) } }

    /// Takes out the segments to remove now: those replaced two minutes and three polls ago, and before that the oldest
    /// of them if they take more room than what is published. So continuous writing takes a bounded multiple of that
    /// room.
    /// - Parameter replicatesSeparately: whether a head that names a segment may still be on its way. Then time alone
    ///   frees none, and ``Garbage/segments(ages:)`` decides.
    mutating func take(
        _ time: UInt64, published: Set<Bits128>, named: Set<Bits128>, replicatesSeparately: Bool
    ) -> [Bits128] {
        var waiting = items.reduce(0) { $0 + $1.bytes }
        let most = max(Self.leastBytes, published.reduce(0) { $0 + (lengths[$1] ?? 0) })
        var taken: [Bits128] = []
        items.removeAll { item in
            let isOld = item.looks >= Self.leastLooks && (time < item.time || time - item.time >= Self.grace)
            let isDue = isOld && !replicatesSeparately || item.looks > 0 && waiting > most
            // Another head still names it. The last device to replace it removes it.
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

/// A head's file.
package struct HeadFile: Equatable, Sendable {
    /// The file's name.
    package let name: String
    /// The digest of its bytes.
    package let digest: Bits128

    /// Makes a head's file from its parts.
    package init(name: String, digest: Bits128) { (self.name, self.digest) = (name, digest) }

    /// The origin after which the file is named; `nil` if it is a copy's name.
    var origin: Origin? { Origin(name[...]) }
}

/// The files in the remote, for garbage collection.
package struct Remains {
    /// The account's heads.
    package let heads: [SeenHead]
    /// The heads that are damaged, or not whole.
    package let unreadable: [HeadFile]
    /// Whether ``heads`` are all heads in the remote, and each is readable. Only then no unknown head names a segment.
    package let areAllHeads: Bool
    /// The names of the segments.
    package let segments: Set<Bits128>
    /// The names of incomplete files and damaged segments.
    package let leftovers: Set<String>

    /// Makes remains from their parts.
    package init(
        heads: [SeenHead], unreadable: [HeadFile] = [], areAllHeads: Bool, segments: Set<Bits128>,
        leftovers: Set<String>
    ) {
        (self.heads, self.unreadable, self.areAllHeads) = (heads, unreadable, areAllHeads)
        (self.segments, self.leftovers) = (segments, leftovers)
    }
}

/// What a process knows for collecting garbage.
package struct GarbageMemory: Sendable {
    /// The ages of files that nobody may need.
    package private(set) var observations = Observations()
    private var latest = LatestHeads()
    private var superseded = Superseded()

    /// Makes the memory of a process that has just started.
    package init() {}

    /// The files to remove.
    package struct Going {
        package let heads: [HeadFile]
        package let segments: [Bits128]
        package let leftovers: [String]
    }

    /// Continues with the previous process's observations.
    package mutating func resume(_ observations: Observations) {
        if self.observations.time == 0 { self.observations = observations }
    }

    /// Notes the heads that a pull has found.
    package mutating func note(_ heads: [SeenHead], time: UInt64) {
        latest.note(heads, time: time)
        superseded.noteLook()
    }

    /// Forgets a head that this device has removed.
    package mutating func forget(_ head: String) { latest.forget(head) }

    /// Notes a segment's length in bytes.
    package mutating func noteLength(_ length: Int, of segment: Bits128) {
        superseded.noteLength(length, of: segment)
    }

    /// Notes that a head of this device names other segments than the one before.
    package mutating func noteReplaced(_ former: Set<Bits128>, by present: Set<Bits128>, time: UInt64) {
        superseded.note(former, now: present, time: time)
    }

    /// Decides which files may be removed.
    /// - Parameters:
    ///   - joined: the digests of the heads that were joined.
    ///   - unread: the digests of the states that could not be read.
    ///   - published: this device's own head.
    package mutating func look(
        at remains: Remains, for request: GarbageCollection, joined: Set<Bits128>, unread: Set<Bits128>,
        published: SeenHead?
    ) -> Going {
        let others = remains.heads.filter { $0.origin != request.origin }
        // It is unknown which segments an unreadable head, or one of another account, names.
        var unnamed = remains.areAllHeads ? remains.segments : []
        for head in remains.heads where Rule.namedSegments.isOn { unnamed.subtract(head.segments) }
        unnamed.subtract(published?.segments ?? [])
        superseded.keep(remains.segments)
        let unreadable = remains.unreadable.filter { $0.origin != request.origin }
        let files =
            others.map { (origin: Optional($0.origin), digest: $0.digest) }
            + unreadable.map { (origin: $0.origin, digest: $0.digest) }
        let forgotten = files.filter { $0.origin.map(request.forgottenOrigins.contains) == true }
        observations.look(
            request.time, heads: Set(files.map(\.digest)), forgotten: Set(forgotten.map(\.digest)), segments: unnamed,
            leftovers: remains.leftovers)
        let heads = Garbage.heads(
            others, own: request.origin, observations: observations, joined: joined, unread: unread,
            published: published)
        return Going(
            heads: heads.map { HeadFile(name: $0.name, digest: $0.digest) }
                + Garbage.unreadable(unreadable, observations: observations),
            segments: Garbage.segments(ages: observations.segments),
            leftovers: Garbage.leftovers(ages: observations.leftovers))
    }

    /// Takes out the segments that this process has replaced and that may be removed now.
    /// - Parameters:
    ///   - heads: the heads in the remote.
    ///   - traits: the backend's traits.
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

    /// Whether any replaced segments are left to take out.
    package var hasReplaced: Bool { !superseded.isEmpty }
}
