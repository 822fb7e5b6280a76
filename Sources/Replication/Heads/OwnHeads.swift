// SPDX-License-Identifier: Apache-2.0

// How a process tells its own head from a clone's, and a restart from a clone.
//
// A process knows the digest of every head that it has written. So a head that it finds under its own name is its last
// one, an older one of its own, or a foreign one.
//
// A process that has just started has written none. The cursor names the last head of the previous process, unless
// that was written after the last pull. The database has counted it even then. But a head with the counted number may
// be the previous process's or a clone's, and nothing in it tells which, because a fork of a running machine has the
// same memory and database. So a head up to that number, and one that the first pull finds, counts as inherited, and so
// does an earlier one that a storage returns later. The device joins it like any head, which changes nothing if it is
// the previous process's and saves the writes if it is a clone's. Then it replaces it by a later head. A clone finds
// that head, did not write it, and takes another origin; or it writes a still later one, and this device does the same.
// If no head is there although one is counted, it may be lost: another device may have removed it under this name when
// it removed the account's former forms. So the device writes it again.

/// Which head it is.
package struct HeadIdentity: Equatable, Sendable {
    /// The writer's origin.
    package let origin: Origin
    /// The digest of the head's bytes.
    package let digest: Bits128
    /// The number of the publication among the writer's.
    package let sequence: UInt64

    /// Makes an identity from its parts.
    package init(origin: Origin, digest: Bits128, sequence: UInt64) {
        self.origin = origin
        self.digest = digest
        self.sequence = sequence
    }
}

/// The heads of this device, as one process knows them.
package struct OwnHeads: Sendable {
    /// The head that this process published last, or that it found as the previous process had left it.
    package private(set) var published: HeadIdentity?
    /// The digests of the heads that this process has written or tried to write, oldest first.
    private var written: [Bits128] = []
    /// The digests of those among ``written`` whose content this device still holds: none from before it began to
    /// download everything again.
    private var held: Set<Bits128> = []
    /// The latest sequence of a head that the previous process may have written, by origin.
    private var inherited: [Origin: UInt64] = [:]
    /// The origins whose heads a pull has looked for.
    private var lookedUp: Set<Origin> = []
    /// The origin whose head the last pull looked for.
    private var lastOrigin: Origin?
    /// Whether the device has to read everything again: it has left an origin, and no longer knows which of that
    /// origin's writes it has seen.
    package private(set) var readsAnew = false
    /// Since when heads under former origins can't be read, or aren't the last ones, in microseconds.
    private var doubtful: [Origin: UInt64] = [:]

    private static let mostWritten = 1024

    /// Makes the state of a process that has written nothing.
    package init() {}

    /// Notes a head before it is written, because the answer may be lost.
    package mutating func noteWriting(_ digest: Bits128) {
        written.append(digest)
        held.insert(digest)
        if written.count > Self.mostWritten { held.remove(written.removeFirst()) }
    }

    /// Notes that the remote has this head under the device's name.
    package mutating func notePublished(_ head: HeadIdentity) { published = head }

    /// Notes that everything readable in the remote is joined.
    package mutating func noteJoined() { readsAnew = false }

    /// Notes that the device will download everything again: it may no longer hold what it has published.
    package mutating func forgetHeld() { held = [] }

    /// Decides what has become of this device's publication, apart from the segments that its head names.
    /// - Parameters:
    ///   - count: how often the device has begun to publish under the origin, according to the database.
    ///   - last: the last publication, according to the cursor.
    ///   - head: returns the head under an origin's name, and whether all of it could be read.
    package mutating func find(
        as origin: Origin, published count: UInt64, last: HeadIdentity?,
        among head: (Origin) -> (head: HeadIdentity, isWhole: Bool)?
    ) -> FoundPublication {
        let own = head(origin)
        switch classify(own?.head, as: origin, published: count, last: last) {
        case .none:
            if isFormerLost(as: origin, last: last, find: head) { return .certain(.missing) }
            // The last publication counts until something is published under the present origin.
            if let published { return .head(published.origin) }
            guard let last, head(last.origin) != nil else { return .certain(.asPublished) }
            return .head(last.origin)
        case .lost, .older, .inherited: return .certain(.missing)
        case .foreign: return .certain(.foreign)
        case .current:
            guard let own, own.isWhole else { return .certain(.missing) }
            if published == nil { notePublished(own.head) }
            return .head(origin)
        }
    }

    /// Decides what a pull has found under the device's name.
    package mutating func classify(
        _ found: HeadIdentity?, as origin: Origin, published count: UInt64, last: HeadIdentity?
    ) -> HeadUnderOwnName {
        if let lastOrigin, lastOrigin != origin { readsAnew = true }
        lastOrigin = origin
        let result = look(at: found, as: origin, published: count, last: last?.origin == origin ? last : nil)
        // The device leaves the origin before it joins anything.
        if case .foreign = result { (lastOrigin, readsAnew) = (nil, true) }
        return result
    }

    private mutating func look(
        at found: HeadIdentity?, as origin: Origin, published count: UInt64, last: HeadIdentity?
    ) -> HeadUnderOwnName {
        if lookedUp.insert(origin).inserted, published?.origin != origin {
            // This process has written nothing under the origin, so the head may be the previous process's.
            let counted = Rule.countedHeads.isOn ? count : 0
            inherited[origin] = max(last?.sequence ?? 0, found?.sequence ?? 0, counted)
        }
        let expected = published?.origin == origin ? published?.digest : last?.digest
        guard let found else { return expected == nil && inherited[origin] ?? 0 == 0 ? .none : .lost }
        // The previous process may have published after the last pull, and the listing may be from before that.
        let isStale = published?.origin != origin && found.sequence < inherited[origin] ?? 0
        if found.digest == expected { return isStale ? .inherited : .current }
        if written.contains(found.digest) { return .older }
        return isInherited(found, origin) ? .inherited : .foreign
    }

    /// Whether a push may replace a head under the device's name.
    package func mayReplace(_ found: HeadIdentity, of origin: Origin) -> Bool {
        if !lookedUp.contains(origin) || found.digest == published?.digest { return true }
        return written.contains(found.digest) || isInherited(found, origin)
    }

    /// Whether a head may be the previous process's: it is not later than the last one that process may have written.
    private func isInherited(_ found: HeadIdentity, _ origin: Origin) -> Bool {
        found.sequence <= inherited[origin] ?? 0
    }

    /// Whether the device has published nothing under its present origin yet, and its last head under a former origin
    /// is gone or older than it was.
    private func isFormerLost(
        as origin: Origin, last: HeadIdentity?, find: (Origin) -> (head: HeadIdentity, isWhole: Bool)?
    ) -> Bool {
        guard let last, last.origin != origin, published == nil, find(origin) == nil else { return false }
        guard let found = find(last.origin), found.isWhole else { return true }
        return found.head.sequence < last.sequence
    }

    /// The number of the next publication.
    /// - Parameters:
    ///   - there: the head in the remote under the device's name.
    ///   - count: how often the device has begun to publish under the origin, according to the database.
    package static func nextSequence(
        as origin: Origin, there: HeadIdentity?, published: HeadIdentity?, count: UInt64
    ) -> UInt64 {
        let sequences = [there, published].compactMap { $0?.origin == origin ? $0?.sequence : nil }
        return max((sequences.max() ?? 0) &+ 1, count)
    }

    /// The former origins of this device whose heads are still in the remote.
    /// - Parameter names: the names of the heads in the remote.
    package static func retired(_ former: [Origin], present names: Set<String>, as origin: Origin) -> [Origin] {
        let origins = Rule.retiredHeads.isOn ? former : names.sorted().compactMap { Origin($0[...]) }
        return origins.filter { $0 != origin && names.contains($0.description) }
    }

    /// Whether a head under a former origin may be removed: this device has joined all of it, and published it last
    /// under that origin. A later one comes from the device whose disk was copied. An earlier one may be what a storage
    /// returns in place of the last, which may hold what this device has forgotten. It may also be all that there is,
    /// and is removed after a day.
    /// - Parameter count: how often the device has begun to publish under the origin.
    package mutating func mayRetire(
        _ head: HeadIdentity, upTo count: UInt64, joined: Set<Bits128>, _ now: UInt64
    ) -> Bool {
        guard head.sequence <= count || !Rule.retiredHeads.isOn else { return false }
        guard joined.contains(head.digest) || held.contains(head.digest) else {
            doubtful[head.origin] = nil
            return false
        }
        return head.sequence >= count || mayRetireDoubtful(head.origin, now)
    }

    /// Whether a head under a former origin may be removed that can't be read, or isn't the last one: after a day. It
    /// may be readable later, and hold what no other device has.
    package mutating func mayRetireDoubtful(_ origin: Origin, _ now: UInt64) -> Bool {
        let since = min(doubtful[origin] ?? now, now)
        doubtful[origin] = since
        return now - since >= Retention.day
    }
}

/// What a pull has found of this device's publication, before it looks for the segments.
package enum FoundPublication: Sendable {
    /// Whatever segments there are.
    case certain(OwnPublication)
    /// The last publication, if the segments are there that the head under this origin's name has.
    case head(Origin)

    /// What has become of the publication.
    /// - Parameter hasSegments: whether the segments of the head are there.
    package func publication(hasSegments: Bool) -> OwnPublication {
        switch self {
        case .certain(let publication): publication
        case .head: hasSegments ? .asPublished : .missing
        }
    }
}

extension OwnPublication {
    /// The same, unless it is as published, but no longer enough.
    package func outdated(if isOutdated: @autoclosure () -> Bool) -> OwnPublication {
        if case .asPublished = self, isOutdated() { .outdated } else { self }
    }
}

/// What a pull found under this device's name.
package enum HeadUnderOwnName: Sendable {
    /// No head, and none was expected.
    case none
    /// No head, though the device has written one, or the previous process may have.
    case lost
    /// The head that this device wrote last.
    case current
    /// An earlier head of this process.
    case older
    /// A head that the previous process may have written.
    case inherited
    /// A head that another device must have written.
    case foreign
}
