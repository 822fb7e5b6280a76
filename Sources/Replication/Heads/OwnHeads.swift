// SPDX-License-Identifier: Apache-2.0

// How a process tells its own head from a clone's, and a restart from a clone.
//
// A process knows the digest of every head that it has written. What it finds under its own name is therefore its
// own, an older one of its own, or not its own. A process that has just started has written nothing. What the one
// before it wrote last is in the cursor, unless that was written after the last pull ended. The database has counted
// it all the same, before it left; but a head of that number may be the predecessor's or a clone's, and nothing in it
// can tell, for a fork of a running machine has everything that we have. So a head that was counted, or that the first
// pull finds, is taken for neither, nor is an earlier one that a storage gives later. It is joined, as every head,
// which does nothing if it is the predecessor's and saves a clone's writes if it is not; and it is replaced by a later
// one. If there is a clone, it finds a head that it never wrote, and takes another origin; or it writes again, a later
// one, and we do.

/// Which head it is.
package struct HeadIdentity: Equatable, Sendable {
    /// Under which its writer writes.
    package let origin: Origin
    /// The digest of its bytes.
    package let digest: Bits128
    /// Which of its writer's publications it is.
    package let sequence: UInt64

    /// An identity of its parts.
    package init(origin: Origin, digest: Bits128, sequence: UInt64) {
        self.origin = origin
        self.digest = digest
        self.sequence = sequence
    }
}

/// The heads of this device, as one process knows them.
package struct OwnHeads: Sendable {
    /// What this process published last, or found of its predecessor as that had left it.
    package private(set) var published: HeadIdentity?
    /// The digests of the heads that this process has written or tried to write, oldest first.
    private var written: [Bits128] = []
    /// Those of them of which everything is still here: none that was written before a download began anew.
    private var held: Set<Bits128> = []
    /// By origin, the latest sequence of a head that the process before this one may have written.
    private var inherited: [Origin: UInt64] = [:]
    /// The origins under whose name a pull has looked.
    private var lookedUp: Set<Origin> = []
    /// Under which origin the last pull looked.
    private var lastOrigin: Origin?
    /// Everything that is there has to be read again: since it was joined, this device has left an origin, and forgot
    /// with it what it had taken in of it.
    package private(set) var readsAnew = false
    /// Since when heads under former origins can't be read, in microseconds.
    private var unreadable: [Origin: UInt64] = [:]

    private static let mostWritten = 1024

    /// Those of a process that has written nothing.
    package init() {}

    /// Remembers a head that is about to be written, since nothing may tell whether it was.
    package mutating func noteWriting(_ digest: Bits128) {
        written.append(digest)
        held.insert(digest)
        if written.count > Self.mostWritten { held.remove(written.removeFirst()) }
    }

    /// The head under the device's name is the one that it knows.
    package mutating func notePublished(_ head: HeadIdentity) { published = head }

    /// What was there is joined, as far as it could be read.
    package mutating func noteJoined() { readsAnew = false }

    /// Everything is to be downloaded anew: what was published may not be here any more.
    package mutating func forgetHeld() { held = [] }

    /// Decides what a pull has found under the device's name.
    /// - Parameters:
    ///   - count: how often the database says that something was about to be published under the origin.
    ///   - last: what the cursor says of the last publication.
    package mutating func classify(
        _ found: HeadIdentity?, as origin: Origin, published count: UInt64, last: HeadIdentity?
    ) -> OwnHead {
        if let lastOrigin, lastOrigin != origin { readsAnew = true }
        lastOrigin = origin
        let result = look(at: found, as: origin, published: count, last: last?.origin == origin ? last : nil)
        // The device leaves the origin before it joins anything.
        if case .foreign = result { (lastOrigin, readsAnew) = (nil, true) }
        return result
    }

    private mutating func look(
        at found: HeadIdentity?, as origin: Origin, published count: UInt64, last: HeadIdentity?
    ) -> OwnHead {
        if lookedUp.insert(origin).inserted, published?.origin != origin {
            // Nothing was written under the origin by this process: what is there may be what the one before it wrote.
            let counted = Rule.countedHeads.isOn ? count : 0
            inherited[origin] = max(last?.sequence ?? 0, found?.sequence ?? 0, counted)
        }
        let expected = published?.origin == origin ? published?.digest : last?.digest
        guard let found else { return expected == nil ? .none : .lost }
        if found.digest == expected { return .current }
        if written.contains(found.digest) { return .older }
        return isInherited(found, origin) ? .inherited : .foreign
    }

    /// Whether a push may replace a head under the device's name.
    package func mayReplace(_ found: HeadIdentity, of origin: Origin) -> Bool {
        if !lookedUp.contains(origin) || found.digest == published?.digest { return true }
        return written.contains(found.digest) || isInherited(found, origin)
    }

    /// Whether a head may be of the process before this one: it is not later than what that is known to have written.
    private func isInherited(_ found: HeadIdentity, _ origin: Origin) -> Bool {
        found.sequence <= inherited[origin] ?? 0
    }

    /// Whether nothing was published under the present origin yet, and what was under a former one is there no more.
    package func isFormerLost(
        as origin: Origin, last: HeadIdentity?, find: (Origin) -> (head: HeadIdentity, isWhole: Bool)?
    ) -> Bool {
        guard let last, last.origin != origin, published == nil, find(origin) == nil else { return false }
        guard let found = find(last.origin), found.isWhole else { return true }
        return found.head.sequence < last.sequence
    }

    /// The number of the next publication.
    /// - Parameters:
    ///   - there: the head that is there under the device's name.
    ///   - count: how often the database says that something was about to be published under the origin.
    package static func nextSequence(
        as origin: Origin, there: HeadIdentity?, published: HeadIdentity?, count: UInt64
    ) -> UInt64 {
        let sequences = [there, published].compactMap { $0?.origin == origin ? $0?.sequence : nil }
        return max((sequences.max() ?? 0) &+ 1, count)
    }

    /// The origins whose heads may be in the remote's way: those under which this device writes no more.
    /// - Parameter names: those of the heads that are there.
    package static func retired(_ former: [Origin], present names: Set<String>, as origin: Origin) -> [Origin] {
        let origins = Rule.retiredHeads.isOn ? former : names.sorted().compactMap { Origin($0[...]) }
        return origins.filter { $0 != origin && names.contains($0.description) }
    }

    /// Whether the head of an origin under which this device writes no more may be removed: all of it was joined here,
    /// and it is not later than what this device published. A later one is of the disk that this one was copied from.
    package mutating func mayRetire(_ head: HeadIdentity, upTo count: UInt64, joined: Set<Bits128>) -> Bool {
        unreadable[head.origin] = nil
        guard head.sequence <= count || !Rule.retiredHeads.isOn else { return false }
        return joined.contains(head.digest) || held.contains(head.digest)
    }

    /// The same of a head that can't be read. One that is torn now may be whole later, with what no other device has.
    package mutating func mayRetireUnreadable(_ origin: Origin, _ now: UInt64) -> Bool {
        let since = min(unreadable[origin] ?? now, now)
        unreadable[origin] = since
        return now - since >= Retention.day
    }
}

/// What is under this device's own name.
package enum OwnHead: Sendable {
    /// Nothing, and nothing has to be.
    case none
    /// Nothing, and something was.
    case lost
    /// What this device wrote last.
    case current
    /// What this process wrote before.
    case older
    /// What may be of the process before this one.
    case inherited
    /// What another device must have written.
    case foreign
}
