// SPDX-License-Identifier: Apache-2.0

// Carries out the decisions of SyncCycle, on heads and segments in memory. Each request is one event.

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// The memory of a process of the core form.
class CoreProcess: SyncDevice, @unchecked Sendable {
    // Safe because everything that touches it happens on one thread.
    let client: Client
    let device: CoreDevice
    let world: World<CoreDevice>
    let timeline: Timeline
    var cycle = SyncCycle()
    private var arming = 0
    /// What this process knows of its own heads.
    private var own = OwnHeads()
    private var witness = HeadWitness()
    private var published: CoreHead?
    private var garbage = GarbageMemory()
    /// The digests of the joined states, among those that the last pull found.
    private var joinedStates: [String: Set<Bits128>] = [:]
    private(set) var unread: Set<Bits128> = []
    private var joinedHeads: Set<Bits128> = []
    /// The heads among them with a state that was passed over.
    private var gaps = HeadGaps()
    /// The remote's revision at the last pull that read everything.
    private var lookedAt: Int?
    private var pull = Pull()
    private var push: Push?

    /// What a pull has found.
    private struct Pull {
        var revision: Int?
        var heads: Heads = []
        /// The same heads, as `Sources/Replication/Heads` sees them.
        var seen: [SeenHead] = []
        /// The names of everything in the folder of the heads.
        var names: [Substring] = []
        var segments: [Bits128: CoreSegment] = [:]
        var news = HeadNews([], known: [], joined: [:])
        /// The digests of the heads of which everything is joined.
        var joined: Set<Bits128> = []
    }

    private struct Push {
        let head: CoreHead
        let segments: [CoreSegment]
        let marks: [UInt64]
        /// The former origins whose heads are still there.
        let retired: [Origin]
    }

    /// Heads in the order of their names, which come without the folder's name.
    private typealias Heads = [(name: Substring, head: CoreHead)]

    private var place: Place<CoreBlob>? {
        device.disk.isSignedIn ? device.disk.place.map { world.places[$0] } : nil
    }

    init(_ device: CoreDevice, _ client: Client? = nil) {
        self.device = device
        (world, timeline) = (device.world, device.world.timeline)
        self.client = client ?? Client(device: device.number)
    }

    /// Makes a process that was copied with its machine.
    init(_ device: CoreDevice, copying other: CoreProcess) {
        self.device = device
        (world, timeline) = (device.world, device.world.timeline)
        client = Client(device: device.number)
        (own, published, garbage) = (other.own, other.published, other.garbage)
        (joinedHeads, joinedStates, gaps) = (other.joinedHeads, other.joinedStates, other.gaps)
        unread = other.unread
    }

    // MARK: When

    var traits: BackendTraits {
        BackendTraits(
            coalescing: .seconds(1), givesHints: world.conditions.givesHints,
            replicatesSeparately: world.conditions.isFolder)
    }

    func end() { client.isAlive = false }

    func begin() {
        guard place != nil else { return }
        var schedule = SyncSchedule(traits, now: timeline.now)
        schedule.hasSubscribers = world.conditions.hasSubscribers
        if device.isPending { schedule.noteChange(timeline.now) }
        cycle = SyncCycle(schedule)
        arm()
    }

    func noteChange() { change { $0.noteChange(timeline.now) } }
    func noteHint() { change { $0.noteHint(timeline.now) } }
    func request() { change { $0.request(timeline.now) } }

    private func change(_ body: (inout SyncSchedule) -> Void) {
        guard var changed = cycle.schedule else { return }
        body(&changed)
        cycle.schedule = changed
        arm()
    }

    private func arm() {
        arming += 1
        guard let due = cycle.nextCycle else { return }
        let (now, armed) = (timeline.now, arming)
        timeline.after(due > now ? due - now : 0) { [self] in
            guard armed == arming, client.isAlive, place != nil else { return }
            _ = cycle.begin(timeline.now)
            startCycle()
        }
    }

    // MARK: A cycle

    /// Runs the cycle that has begun.
    func startCycle() { carryOut(.pull) }

    private func advance(after event: SyncCycle.Event) { carryOut(cycle.next(after: event, facts)) }

    private func carryOut(_ action: SyncCycle.Action) {
        switch action {
        case .pull: beginPull()
        case .leaveOrigin: advance(after: leave([origin]) ? .done : .interrupted)
        case .read(let store): advance(after: .joined(take(read(store), of: store)))
        case .endPull(let joined): endPull(joined)
        case .keep(let isRead, _): keep(isRead: isRead)
        case .beginPush: beginPush()
        case .synchronize:
            timeline.after(5 * millisecond) { [self] in
                guard client.isAlive else { return }
                device.synced = device.disk
                advance(after: .done)
            }
        case .endPush: endPush()
        case .markPublished: markPublished()
        case .collectGarbage: collectGarbage()
        case .upload: advance(after: .done)
        case .rest: rest()
        }
    }

    func rest() {
        if cycle.uploaded, !device.isPending { world.noteSettled(device) }
        arm()
    }

    func fail(_ error: RemoteError) {
        world.trace.note(timeline.now, 6, UInt64(device.number), line: "device \(device.number): \(error)")
        cycle.fail(error, timeline.now, jitter: world.chance.next())
        arm()
    }

    /// The value of a request's result; `nil` if the process is dead or the request failed, which also ends the cycle.
    private func proceed<T>(_ result: Result<T, RemoteError>) -> T? {
        guard client.isAlive else { return nil }
        switch result {
        case .success(let value): return value
        case .failure(let error):
            fail(error)
            return nil
        }
    }

    // MARK: The device

    var origin: Origin { device.disk.origin ?? Origin(bits: 0) }

    var facts: SyncCycle.Facts {
        let isOld = !Rule.noEcho.isOn && device.disk.current.replicas.contains { $0.sequence > $0.published }
        let time = world.now(device) * 1000
        return SyncCycle.Facts(
            now: timeline.now, time: time, traits: traits, isDownloaded: device.disk.current.isDownloaded,
            isPending: device.isPending || isOld, lastPush: device.disk.current.pushed * 1000,
            lastGarbageCollection: device.disk.current.collected * 1000)
    }

    /// Empty where tombstones are forgotten, because the simulation forgets them at any time.
    var rememberedTimes: Range<UInt64> {
        world.hasForgotten || world.conditions.hazards.contains(.forget) ? 0..<0 : 0..<UInt64.max
    }

    /// Takes another origin if one of this device's is shared. Without a fork that may restore what was removed.
    func leave(_ shared: Set<Origin>) -> Bool {
        if !world.conditions.hazards.contains(.fork) { world.report("a clone was seen where there is none") }
        let left = shared.intersection(device.disk.formerOrigins + [origin])
        if left.isEmpty { return false }
        device.leave(left)
        return true
    }

    func replica(of name: String) -> (CoreReplica, isArriving: Bool)? {
        guard let store = Names.stores.firstIndex(of: name) else { return nil }
        let replica = device.disk.replica(store)
        return (replica, !replica.isDownloaded)
    }

    func carryOut(_ plan: JoinPlan, in _: CoreReplica, of name: String, isArriving: Bool) -> Bool {
        guard let store = Names.stores.firstIndex(of: name) else { return false }
        device.disk.update(store) {
            $0.carryOut(plan)
            $0.isDownloaded = true
        }
        return true
    }

    private func take(_ change: RemoteChange, of store: String) -> SyncCycle.Joining {
        do { return try join(change, to: store) } catch {
            world.report("joining: \(error)")
            return .unchanged
        }
    }

    /// Marks every store of the account as arrived.
    func arriveEverywhere() {
        for store in Names.stores.prefix(world.conditions.stores) where replica(of: store)?.isArriving == true {
            _ = take(RemoteChange(state: StoreState(), isComplete: true), of: store)
        }
        device.disk.current.isDownloaded = true
    }

    func recordPublication() { if Rule.recordFirst.isOn { device.disk.publications += 1 } }

    func checkOnDisk(_ vector: VersionVector, _ store: Int) {
        if !device.synced.replica(store).vector.isSuperset(of: vector) {
            world.report("I1: device \(device.number) uploads what is not on its disk")
        }
    }

    /// Marks a store as uploaded up to the change with this sequence number.
    func mark(_ store: Int, _ sequence: UInt64) {
        device.disk.update(store) {
            $0.published = max($0.published, Rule.exactMarks.isOn ? sequence : $0.sequence)
        }
    }

    // MARK: Download

    private func beginPull() {
        place?.getAll(below: "h/", unless: cycle.needsRepublication ? nil : lookedAt, client) { [self] in
            guard let (heads, revision) = proceed($0) else { return }
            guard let heads else { return advance(after: .unchanged) }
            (lookedAt, pull) = (nil, Pull())
            pull.revision = revision
            note(heads)
            garbage.resume(device.disk.current.observations)
            let publication = look()
            let needed = Set(pull.heads.flatMap(\.head.segments)).sorted()
            if needed.isEmpty { return sort(publication) }
            place?.getAll(named: needed.map(CoreSegment.path), client) { [self] in
                guard let found = proceed($0)?.0 else { return }
                for case .segment(let segment) in found.map(\.blob) { pull.segments[segment.name] = segment }
                sort(publication)
            }
        }
    }

    private func note(_ found: [(name: String, blob: CoreBlob)]) {
        pull.names = found.map { $0.name.dropFirst(2) }
        pull.heads = zip(pull.names, found).compactMap { name, found in
            if case .head(let head) = found.blob { (name, head) } else { nil }
        }
        pull.seen = pull.heads.map { $0.head.seen(under: $0.name) }
    }

    private func head(of origin: Origin?) -> CoreHead? {
        zip(pull.heads, pull.seen).first { $1.origin == origin && !$1.isCopy }?.0.head
    }

    /// Compares this device's head with what the device published last.
    private func look() -> FoundPublication {
        let found = own.find(as: origin, published: device.disk.publications, last: device.disk.current.own) {
            head(of: $0).map { ($0.identity, true) }
        }
        if case .head(origin) = found, published == nil { published = head(of: origin) }
        return found
    }

    /// Finds what is new in the heads and segments that were read.
    private func sort(_ found: FoundPublication) {
        var hasSegments = true
        if case .head(let origin) = found, let head = published ?? head(of: origin) {
            hasSegments = head.segments.isSubset(of: pull.segments.keys)
        }
        if own.readsAnew {
            (joinedHeads, joinedStates, gaps) = ([], [:], HeadGaps())
            witness.forget()
        }
        let isLost = witness.misses(in: pull.seen)
        gaps.beginPull()
        pull.news = HeadNews(pull.seen, known: known, joined: joinedStates, passedOver: gaps.statesToSkip)
        advance(
            after: .pulled(
                found.publication(hasSegments: hasSegments).outdated(if: isLost), stores: pull.news.stores,
                beginsAnew: !device.disk.current.isDownloaded))
    }

    private var known: Set<Bits128> {
        if own.readsAnew { return [] }
        var known = device.disk.current.heads.union(joinedHeads).subtracting(gaps.headsToRead)
        if let published { known.insert(published.digest) }
        return known
    }

    /// Reads what is new of a store.
    private func read(_ identifier: String) -> RemoteChange {
        guard let store = Names.stores.firstIndex(of: identifier) else {
            return RemoteChange(state: StoreState(), isComplete: true)
        }
        var (states, lacking) = (JoinedStates(), pull.news.states[identifier] ?? [])
        for (_, head) in pull.heads where store < head.parts.count && lacking.contains(head.parts[store].digest) {
            guard let base = base(of: head.parts[store]) else { continue }
            states.join(head.parts[store].state(over: base))
            lacking.remove(head.parts[store].digest)
            pull.news.noteRead(head.parts[store].digest, of: identifier)
        }
        let isComplete = pull.news.passOver(lacking, of: identifier, read: states.state.vector)
        return RemoteChange(states, isComplete: isComplete)
    }

    private func base(of part: StatePart) -> [Key: Entry]? {
        var entries: [Key: Entry] = [:]
        for name in part.base.names {
            if let segment = pull.segments[name] {
                entries.merge(segment.entries) { $1 }
            } else if Rule.wholeStates.isOn {
                return nil
            }
        }
        return entries
    }

    private func endPull(_ joined: Set<String>) {
        let result = pull.news.finish(joined: joined)
        (joinedHeads, joinedStates) = (result.heads, result.states)
        gaps.note(result)
        unread = result.unread
        own.noteJoined()
        witness.note(pull.seen, joined: result.heads)
        pull.joined = result.heads.subtracting(gaps.heads)
        garbage.note(pull.seen, time: time)
        sweep { [self] in advance(after: .ended(isComplete: result.isComplete)) }
    }

    private func keep(isRead: Bool) {
        if isRead, gaps.isEmpty { lookedAt = pull.revision }
        arriveEverywhere()
        device.disk.current.heads = pull.joined
        device.disk.current.own = own.published ?? device.disk.current.own
        device.disk.current.observations = garbage.observations
        advance(after: .done)
    }

    // MARK: Upload

    private func beginPush() {
        recordPublication()
        let there = head(of: origin)
        guard there.map({ own.mayReplace($0.identity, of: origin) }) ?? true else {
            return fail(RemoteError(.unavailable, "another device writes under this one's name"))
        }
        let sequence = OwnHeads.nextSequence(
            as: origin, there: there?.identity, published: published?.identity, count: device.disk.publications)
        var (parts, segments) = ([StatePart](), [CoreSegment]())
        for store in 0..<world.conditions.stores { parts.append(part(store, &segments)) }
        push = Push(
            head: CoreHead(origin: origin, sequence: sequence, parts: parts),
            segments: segments.sorted { $0.name < $1.name }, marks: device.disk.current.replicas.map(\.sequence),
            retired: OwnHeads.retired(device.disk.formerOrigins, present: Set(pull.names.map(String.init)), as: origin))
        advance(after: .began(stores: []))
    }

    /// Cuts a store into segments and a tail. An existing cut stays if it is good enough.
    private func part(_ store: Int, _ segments: inout [CoreSegment]) -> StatePart {
        let state = device.disk.replica(store).state
        let digests = StateDigests(state)
        let own = published.flatMap { store < $0.parts.count ? $0.parts[store] : nil }
        let others = pull.heads.filter { $0.head.origin != origin && store < $0.head.parts.count }
        let candidates = StatePart.candidates(
            own: own, others: others.map { $0.head.parts[store] }, present: Set(pull.segments.keys))
        let shared = candidates.filter { $0.digest == digests.state }
        if let best = shared.first { return shared.reduce(best) { $1.isPreferable(to: $0) ? $1 : $0 } }
        var base = BaseChoice(for: digests)
        for part in candidates { base.consider(part, contents(of: part)) }
        let draft = PartDraft(
            state, digests: digests, store: Names.stores[store], over: base.part, contents: base.contents,
            contextBase: VersionVector(), limits: .core, CoreSegmentWriter())
        segments += draft.segments.values.filter { pull.segments[$0.name] == nil }
        return draft.part
    }

    private func contents(of part: StatePart) -> [Key: Bits128] {
        part.base.names.reduce(into: [:]) { $0.merge(pull.segments[$1]?.digests ?? [:]) { $1 } }
    }

    private func endPush() {
        guard let push, push.head.origin == origin else { return advance(after: .interrupted) }
        let end = { [self] in sweep { [self] in retire(push.retired[...]) } }
        if Rule.segmentsFirst.isOn { return put(push.segments[...]) { [self] in put(push.head, then: end) } }
        put(push.head) { [self] in put(push.segments[...], then: end) }
    }

    private func put(_ segments: ArraySlice<CoreSegment>, then next: @escaping () -> Void) {
        guard let first = segments.first else { return next() }
        world.trace.note(
            timeline.now, 8, UInt64(device.number), first.name.low,
            line: "device \(device.number) puts \(CoreSegment.path(of: first.name))")
        place?.put(CoreSegment.path(of: first.name), .segment(first), client) { [self] in
            guard proceed($0) != nil else { return }
            pull.segments[first.name] = first
            garbage.noteLength(first.entries.count, of: first.name)
            put(segments.dropFirst(), then: next)
        }
    }

    private func put(_ head: CoreHead, then next: @escaping () -> Void) {
        for (store, part) in head.parts.enumerated() { checkOnDisk(part.vector, store) }
        guard head.origin == origin else { return advance(after: .interrupted) }
        own.noteWriting(head.digest)
        place?.put(device.disk.headName, .head(head), client) { [self] in
            guard proceed($0) != nil else { return }
            garbage.noteReplaced(published?.segments ?? [], by: head.segments, time: time)
            published = head
            own.notePublished(head.identity)
            witness.forget()
            next()
        }
    }

    private func markPublished() {
        if let push, push.head.origin == origin {
            device.disk.current.pushed = max(1, world.now(device))
            for (store, sequence) in push.marks.enumerated() { mark(store, sequence) }
        }
        advance(after: .done)
    }

    /// Removes the heads of origins that this device no longer uses. A failure does not fail the cycle.
    private func retire(_ origins: ArraySlice<Origin>) {
        guard let origin = origins.first else { return advance(after: .done) }
        remove(CoreHead.name(of: origin), if: { [self] in mayRetire($0, origin) }) { [self] in
            guard let isRemoved = $0 else { return advance(after: .done) }
            if isRemoved { garbage.forget(origin.description) }
            retire(origins.dropFirst())
        }
    }

    private func mayRetire(_ blob: CoreBlob, _ origin: Origin) -> Bool {
        if case .head(let head) = blob {
            let count = device.disk.formerCounts[head.origin] ?? 0
            let joined = joinedHeads.union(device.disk.current.heads)
            return own.mayRetire(head.identity, upTo: count, joined: joined, time)
        }
        return own.mayRetireDoubtful(origin, time)
    }

    // MARK: Garbage

    /// The time by the device's clock, in microseconds since 1970.
    private var time: UInt64 { world.now(device) * 1000 }

    /// Removes an object if its present content may go.
    /// - Parameter next: called with whether the object was removed; `nil` if a request failed.
    private func remove(
        _ path: String, if mayGo: @escaping (CoreBlob) -> Bool, then next: @escaping (Bool?) -> Void
    ) {
        guard let place else { return next(nil) }
        place.get(path, client) { [self] in
            guard client.isAlive else { return }
            guard case .success(let found) = $0 else { return next(nil) }
            guard let blob = found, mayGo(blob) else { return next(false) }
            place.delete(path, client) { [self] in
                guard client.isAlive else { return }
                if case .success = $0 { next(true) } else { next(nil) }
            }
        }
    }

    /// Removes segments that this process has replaced. A failure does not fail the cycle.
    private func sweep(then next: @escaping () -> Void) {
        guard garbage.hasReplaced else { return next() }
        let names = garbage.takeReplaced(time, heads: pull.seen, published: published?.seen, traits: traits)
        removeSegments(names[...], then: next)
    }

    private func removeSegments(_ names: ArraySlice<Bits128>, then next: @escaping () -> Void) {
        guard let name = names.first, let place else { return next() }
        pull.segments[name] = nil
        world.trace.note(
            timeline.now, 8, UInt64(device.number), name.low,
            line: "device \(device.number) removes \(CoreSegment.path(of: name))")
        place.delete(CoreSegment.path(of: name), client) { [self] in
            guard client.isAlive else { return }
            if case .success = $0 { removeSegments(names.dropFirst(), then: next) } else { next() }
        }
    }

    private func collectGarbage() {
        device.disk.current.collected = world.now(device)
        place?.getAll(below: "h/", client) { [self] in
            guard client.isAlive else { return }
            guard case .success((let found?, _)) = $0 else { return advance(after: .done) }
            note(found)
            place?.list("s", client) { [self] in
                guard client.isAlive else { return }
                guard case .success(let names) = $0 else { return advance(after: .done) }
                remove(going(of: names.compactMap { CoreSegment.name(of: $0.name) }))
            }
        }
    }

    private func going(of segments: [Bits128]) -> GarbageMemory.Going {
        let remains = Remains(
            heads: pull.seen, areAllHeads: pull.heads.count == pull.names.count, segments: Set(segments),
            leftovers: [])
        let request = GarbageCollection(account: "", origin: origin, forgottenOrigins: [], time: time)
        return garbage.look(
            at: remains, for: request, joined: joinedHeads, unread: unread,
            published: published?.seen)
    }

    private func remove(_ going: GarbageMemory.Going) {
        removeHeads(going.heads[...]) { [self] in
            removeSegments(going.segments[...]) { [self] in sweep { [self] in advance(after: .done) } }
        }
    }

    /// Removes heads, unless they were rewritten since they were read.
    private func removeHeads(_ heads: ArraySlice<HeadFile>, then next: @escaping () -> Void) {
        guard let head = heads.first else { return next() }
        let isSame = { (blob: CoreBlob) in
            if case .head(let found) = blob { found.digest == head.digest } else { false }
        }
        remove("h/\(head.name)", if: isSame) { [self] in
            guard let isRemoved = $0 else { return advance(after: .done) }
            if isRemoved { garbage.forget(head.name) }
            removeHeads(heads.dropFirst(), then: next)
        }
    }
}

extension CoreDevice {
    /// Takes a new origin, because another device writes under these of its origins.
    func leave(_ left: Set<Origin>) {
        world.leftOrigins += 1
        disk.leave(for: drawOrigin())
        disk.redot(from: left)
    }
}
