// SPDX-License-Identifier: Apache-2.0

// Carries out what SyncCycle decides, on heads and segments in memory, each request as one event.

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// What a process of the core has in memory.
class CoreProcess: SyncDevice, @unchecked Sendable {
    // Because everything that has to do with it happens on one thread.
    let client: Client
    let device: CoreDevice
    let world: World<CoreDevice>
    let timeline: Timeline
    var cycle = SyncCycle()
    private var arming = 0
    /// What is known of what this process published.
    private var own = OwnHeads()
    private var published: CoreHead?
    private var publishedBase: [CoreSegment.Name: CoreSegment] = [:]
    /// The digests of the states that are joined, of those that were there at the last look.
    private var joinedStates: [String: Set<Bits128>] = [:]
    private var passedOver: [String: Set<Bits128>] = [:]
    private var joinedHeads: Set<Bits128> = []
    /// What there was to see when everything was joined.
    private var lookedAt: Int?
    private var pull = Pull()
    private var push: (head: CoreHead, segments: [CoreSegment], marks: [UInt64])?

    /// What a pull has found.
    private struct Pull {
        var revision: Int?
        var heads: Heads = []
        var segments: [CoreSegment] = []
        var news = HeadNews([], known: [], joined: [:], passedOver: [:])
        /// The digests of the heads of which everything is joined.
        var joined: Set<Bits128> = []
    }

    /// Heads as they were found, in the order of names.
    private typealias Heads = [(name: String, head: CoreHead)]

    private var place: Place<CoreBlob>? {
        device.disk.isSignedIn ? device.disk.place.map { world.places[$0] } : nil
    }

    init(_ device: CoreDevice, _ client: Client? = nil) {
        self.device = device
        (world, timeline) = (device.world, device.world.timeline)
        self.client = client ?? Client(device: device.number)
    }

    /// A process that was copied with its machine.
    init(_ device: CoreDevice, copying other: CoreProcess) {
        self.device = device
        (world, timeline) = (device.world, device.world.timeline)
        client = Client(device: device.number)
        (own, published, publishedBase) = (other.own, other.published, other.publishedBase)
        (joinedHeads, joinedStates, passedOver) = (other.joinedHeads, other.joinedStates, other.passedOver)
    }

    // MARK: When

    var traits: BackendTraits {
        BackendTraits(coalescing: .seconds(1), tellsOfChanges: world.conditions.tellsOfChanges)
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

    /// Makes the cycle that has begun.
    func startCycle() { carryOut(.pull) }

    private func goOn(after event: SyncCycle.Event) { carryOut(cycle.next(after: event, facts)) }

    private func carryOut(_ action: SyncCycle.Action) {
        switch action {
        case .pull: beginPull()
        case .leaveOrigin: goOn(after: leave([origin]) ? .done : .interrupted)
        case .read(let store): goOn(after: .joined(take(read(store), of: store)))
        case .endPull(let joined): endPull(joined)
        case .keep(let isRead, _): keep(isRead: isRead)
        case .beginPush: beginPush()
        case .synchronize:
            timeline.after(5 * millisecond) { [self] in
                guard client.isAlive else { return }
                device.synced = device.disk
                goOn(after: .done)
            }
        case .endPush: endPush()
        case .markPublished: markPublished()
        case .upload, .collectGarbage: goOn(after: .done)
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

    /// What a request came to, if the cycle goes on.
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
            lastGarbageCollection: time)
    }

    /// Tombstones are forgotten at any time where they are forgotten.
    var rememberedTimes: Range<UInt64> {
        world.hasForgotten || world.conditions.hazards.contains(.forget) ? 0..<0 : 0..<UInt64.max
    }

    /// Leaving an origin for no reason may bring back what was removed.
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

    /// Every store of the account has arrived.
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

    /// A store was uploaded as it was after so many changes.
    func mark(_ store: Int, _ sequence: UInt64) {
        device.disk.update(store) {
            $0.published = max($0.published, Rule.exactMarks.isOn ? sequence : $0.sequence)
        }
    }

    // MARK: Download

    private func beginPull() {
        place?.getAll(below: "h/", unless: cycle.needsRepublication ? nil : lookedAt, client) { [self] in
            guard let (heads, revision) = proceed($0) else { return }
            guard let heads else { return goOn(after: .unchanged) }
            (lookedAt, pull) = (nil, Pull())
            pull.revision = revision
            pull.heads = heads.compactMap { if case .head(let head) = $0.blob { ($0.name, head) } else { nil } }
            let publication = look()
            let needed = segments(of: pull.heads)
            if needed.isEmpty { return sort(publication) }
            place?.getAll(named: needed.map(\.string), client) { [self] in
                guard let found = proceed($0)?.0 else { return }
                pull.segments = found.compactMap { if case .segment(let segment) = $0.blob { segment } else { nil } }
                sort(publication)
            }
        }
    }

    private func head(_ name: String) -> CoreHead? { pull.heads.first { $0.name == name }?.head }

    /// What became of this device's own head.
    private func look() -> OwnPublication {
        let (found, last) = (head(device.disk.headName), device.disk.current.own)
        switch own.classify(found?.identity, as: origin, published: device.disk.publications, last: last) {
        case .none: return isFormerLost ? .missing : .asPublished
        case .current:
            if let found, published == nil {
                published = found
                own.notePublished(found.identity)
            }
            return .asPublished
        case .lost, .older, .inherited: return .missing
        case .foreign: return .foreign
        }
    }

    private var isFormerLost: Bool {
        own.isFormerLost(as: origin, last: device.disk.current.own) { origin in
            head(CoreHead.name(of: origin)).map { ($0.identity, true) }
        }
    }

    private func segments(of heads: Heads) -> [CoreSegment.Name] {
        var names: [CoreSegment.Name] = []
        for (_, head) in heads {
            for part in head.parts {
                if let name = part.segment, !names.contains(name) { names.append(name) }
            }
        }
        return names.sorted()
    }

    /// Finds what is new in what is there.
    private func sort(_ publication: OwnPublication) {
        var publication = publication
        if case .asPublished = publication, let published, !published.parts.allSatisfy(isThere) {
            publication = .missing
        }
        if own.readsAnew { (joinedHeads, joinedStates, passedOver) = ([], [:], [:]) }
        pull.news = HeadNews(
            pull.heads.map { $0.head.seen(under: $0.name) }, known: known, joined: joinedStates,
            passedOver: passedOver)
        goOn(
            after: .pulled(
                publication, stores: pull.news.stores, beginsAnew: !device.disk.current.isDownloaded))
    }

    private func isThere(_ part: CoreHead.Part) -> Bool {
        part.segment.map { name in pull.segments.contains { $0.name == name } } ?? true
    }

    private var known: Set<Bits128> {
        if own.readsAnew { return [] }
        var known = device.disk.current.heads.union(joinedHeads)
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

    private func base(of part: CoreHead.Part) -> [Key: Entry]? {
        guard let name = part.segment else { return [:] }
        return pull.segments.first { $0.name == name }?.entries ?? (Rule.wholeStates.isOn ? nil : [:])
    }

    private func endPull(_ joined: Set<String>) {
        let result = pull.news.finish(joined: joined)
        (joinedHeads, joinedStates, passedOver) = (result.heads, result.states, result.passedOver)
        own.noteJoined()
        pull.joined = result.heads.subtracting(result.headsWithGaps)
        goOn(after: .ended(isComplete: result.isComplete))
    }

    private func keep(isRead: Bool) {
        if isRead { lookedAt = pull.revision }
        arriveEverywhere()
        device.disk.current.heads = pull.joined
        device.disk.current.own = own.published ?? device.disk.current.own
        goOn(after: .done)
    }

    // MARK: Upload

    private func beginPush() {
        recordPublication()
        let there = head(device.disk.headName)
        let last = max(published?.origin == origin ? published?.sequence ?? 0 : 0, there?.sequence ?? 0)
        var (parts, segments) = ([CoreHead.Part](), [CoreSegment]())
        for store in 0..<world.conditions.stores { parts.append(part(store, &segments)) }
        let head = CoreHead(origin: origin, sequence: max(last + 1, device.disk.publications), parts: parts)
        push = (head, segments.sorted { $0.name < $1.name }, device.disk.current.replicas.map(\.sequence))
        goOn(after: .began(stores: []))
    }

    /// Cuts a store: what changed is in the tail until there is too much of it.
    private func part(_ store: Int, _ segments: inout [CoreSegment]) -> CoreHead.Part {
        let state = device.disk.replica(store).state
        let former = published.flatMap { store < $0.parts.count ? $0.parts[store] : nil }
        var part = CoreHead.Part(digest: Digest.of(state), vector: state.vector, tail: state.entries, removed: [])
        if let name = former?.segment, let base = publishedBase[name]?.entries, !cycle.needsRepublication {
            let tail = state.entries.filter { base[$0.key] != $0.value }
            if tail.count <= 2 {
                (part.segment, part.tail) = (name, tail)
                part.removed = base.keys.filter { state.entries[$0] == nil }.sorted()
                return part
            }
        }
        if state.entries.count > 1 {
            let name = CoreSegment.Name(Digest.of(Digest.of(state.entries), UInt64(store)))
            let segment = CoreSegment(name, state.entries)
            segments.append(segment)
            publishedBase[name] = segment
            (part.segment, part.tail) = (name, [:])
        }
        return part
    }

    private func endPush() {
        guard let push, push.head.origin == origin else { return goOn(after: .interrupted) }
        let segments = push.segments[...]
        if Rule.segmentsFirst.isOn { return put(segments) { [self] in put(push.head) { [self] in retireHeads() } } }
        put(push.head) { [self] in put(segments) { [self] in retireHeads() } }
    }

    private func put(_ segments: ArraySlice<CoreSegment>, then next: @escaping () -> Void) {
        guard let first = segments.first else { return next() }
        place?.put(first.name.string, .segment(first), client) { [self] in
            guard proceed($0) != nil else { return }
            put(segments.dropFirst(), then: next)
        }
    }

    private func put(_ head: CoreHead, then next: @escaping () -> Void) {
        for (store, part) in head.parts.enumerated() { checkOnDisk(part.vector, store) }
        guard head.origin == origin else { return goOn(after: .interrupted) }
        own.noteWriting(head.digest)
        place?.put(device.disk.headName, .head(head), client) { [self] in
            guard proceed($0) != nil else { return }
            published = head
            own.notePublished(head.identity)
            next()
        }
    }

    private func markPublished() {
        if let push, push.head.origin == origin {
            device.disk.current.pushed = world.now(device)
            for (store, sequence) in push.marks.enumerated() { mark(store, sequence) }
        }
        goOn(after: .done)
    }

    /// Removes the heads of origins under which nobody writes any more, as far as this device knows. Not worth a failure.
    private func retireHeads() {
        var origins = device.disk.formerOrigins
        if !Rule.retiredHeads.isOn {
            origins = (place?.names(seenBy: device.number) ?? []).compactMap { Origin($0.dropFirst(2)) }
        }
        retire(origins.filter { $0 != origin }[...])
    }

    private func retire(_ origins: ArraySlice<Origin>) {
        guard let place, let origin = origins.first else { return goOn(after: .done) }
        let name = CoreHead.name(of: origin)
        guard place.has(name, seenBy: device.number) else { return retire(origins.dropFirst()) }
        place.get(name, client) { [self] in
            guard client.isAlive else { return }
            guard case .success(let blob) = $0 else { return goOn(after: .done) }
            if !mayRetire(blob, origin) { return retire(origins.dropFirst()) }
            place.delete(name, client) { [self] in
                guard client.isAlive else { return }
                if case .success = $0 { retire(origins.dropFirst()) } else { goOn(after: .done) }
            }
        }
    }

    private func mayRetire(_ blob: CoreBlob?, _ origin: Origin) -> Bool {
        if case .head(let head)? = blob {
            let count = device.disk.formerCounts[head.origin] ?? 0
            return own.mayRetire(head.identity, upTo: count, joined: joinedHeads.union(device.disk.current.heads))
        }
        return own.mayRetireUnreadable(origin, world.now(device) * 1000)
    }
}

extension CoreDevice {
    /// Goes on under a new origin, since another device writes under these of its origins as well.
    func leave(_ left: Set<Origin>) {
        world.leftOrigins += 1
        disk.leave(for: drawOrigin())
        disk.redot(from: left)
    }
}
