// SPDX-License-Identifier: Apache-2.0

// What AccountSync and BlobBackend do in a pass, step by step, each as one event: look → read what is missing → join →
// record the publication → sync the disk → segments → head → mark as published → remove own former heads.

internal import PropertyList
internal import Replication
internal import StoreEngine
internal import SyncEngine

/// What a process of the core has in memory.
class CoreProcess: @unchecked Sendable {
    // Because everything that has to do with it happens on one thread.
    let client: Client
    let device: CoreDevice
    let world: World<CoreDevice>
    private let timeline: Timeline
    var schedule: SyncSchedule?
    private var isCycling = false
    private var uploads = false
    private var arming = 0
    /// What is known of what this process published.
    private var own = OwnHeads()
    private var published: CoreHead?
    private var publishedBase: [CoreSegment.Name: CoreSegment] = [:]
    /// The digests of the states that are joined, of those that were there at the last look.
    private var joinedStates: [String: Set<Bits128>] = [:]
    private var passedOver: [String: Set<Bits128>] = [:]
    private var joinedHeads: Set<Bits128> = []
    /// What it published is not there.
    var isMissing = false
    /// What there was to see when everything was joined.
    private var lookedAt: Int?
    private var seen: Int?

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
        schedule = SyncSchedule(traits, now: timeline.now)
        schedule?.hasSubscribers = world.conditions.hasSubscribers
        if device.isPending { schedule?.noteChange(timeline.now) }
        arm()
    }

    func noteChange() { change { $0.noteChange(timeline.now) } }
    func noteHint() { change { $0.noteHint(timeline.now) } }
    func request() { change { $0.request(timeline.now) } }

    private func change(_ body: (inout SyncSchedule) -> Void) {
        guard var changed = schedule else { return }
        body(&changed)
        schedule = changed
        arm()
    }

    private func arm() {
        arming += 1
        guard !isCycling, let due = schedule?.nextCycle else { return }
        let (now, armed) = (timeline.now, arming)
        timeline.after(due > now ? due - now : 0) { [self] in
            if armed == arming, client.isAlive { pass() }
        }
    }

    func beginCycle() {
        isCycling = true
        uploads = schedule?.begin(timeline.now) ?? false
    }

    func pass() {
        guard let place else { return }
        beginCycle()
        place.getAll(below: "h/", unless: isMissing ? nil : lookedAt, client) { [self] in
            guard let (heads, revision) = proceed($0) else { return }
            guard let heads else { return download(false, []) }
            (lookedAt, seen) = (nil, revision)
            look(at: heads.compactMap { if case .head(let head) = $0.blob { ($0.name, head) } else { nil } })
        }
    }

    /// What a request came to, if the pass goes on.
    func proceed<T>(_ result: Result<T, RemoteError>) -> T? {
        guard client.isAlive else { return nil }
        switch result {
        case .success(let value): return value
        case .failure(let error):
            world.trace.note(timeline.now, 6, UInt64(device.number), line: "device \(device.number): \(error)")
            schedule?.failed(timeline.now, retryAfter: error.retryAfter, jitter: world.chance.next())
            endCycle()
            return nil
        }
    }

    private func endCycle() {
        isCycling = false
        arm()
    }

    // MARK: Download

    /// Heads as they were found, in the order of names.
    private typealias Heads = [(name: String, head: CoreHead)]

    private func head(_ name: String, in heads: Heads) -> CoreHead? { heads.first { $0.name == name }?.head }

    private func look(at heads: Heads) {
        guard let origin = device.disk.origin else { return }
        let (found, last) = (head(device.disk.headName, in: heads), device.disk.current.own)
        switch own.classify(found?.identity, as: origin, published: device.disk.publications, last: last) {
        case .none: isMissing = isFormerLost(heads, origin)
        case .current:
            if let found, published == nil {
                published = found
                own.notePublished(found.identity)
            }
            isMissing = isFormerLost(heads, origin)
        case .lost, .older, .inherited: isMissing = true
        case .foreign:
            isMissing = true
            reportClone("a foreign head")
            if Rule.leaveClones.isOn { device.leave([origin]) }
        }
        let needed = segments(of: heads)
        if needed.isEmpty { return join(heads, []) }
        place?.getAll(named: needed.map(\.string), client) { [self] in
            guard let found = proceed($0)?.0 else { return }
            let segments = found.compactMap { if case .segment(let segment) = $0.blob { segment } else { nil } }
            if let own = published, !own.parts.allSatisfy({ isThere($0, in: segments) }) { isMissing = true }
            join(heads, segments)
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

    private func isThere(_ part: CoreHead.Part, in segments: [CoreSegment]) -> Bool {
        part.segment.map { name in segments.contains { $0.name == name } } ?? true
    }

    private func isFormerLost(_ heads: Heads, _ origin: Origin) -> Bool {
        own.isFormerLost(as: origin, last: device.disk.current.own) { origin in
            head(CoreHead.name(of: origin), in: heads).map { ($0.identity, true) }
        }
    }

    private func join(_ heads: Heads, _ segments: [CoreSegment]) {
        if own.readsAnew { (joinedHeads, joinedStates, passedOver) = ([], [:], [:]) }
        var news = HeadNews(
            heads.map { $0.head.seen(under: $0.name) }, known: known, joined: joinedStates, passedOver: passedOver)
        var (joined, received, isWaiting) = (Set<String>(), false, false)
        for (store, identifier) in Names.stores.prefix(world.conditions.stores).enumerated()
        where news.states[identifier] != nil {
            let (states, isWhole) = read(store, &news, heads, segments)
            // What is written after the arrival is ordinary, and must know all that the account has.
            if !isWhole, !device.disk.replica(store).isDownloaded {
                isWaiting = true
                continue
            }
            if join(store, states) { received = true }
            joined.insert(identifier)
        }
        let result = news.finish(joined: joined)
        let isRead = result.isComplete && !isWaiting
        (joinedHeads, joinedStates, passedOver) = (result.heads, result.states, result.passedOver)
        own.noteJoined()
        if isRead { lookedAt = seen }
        if isRead || device.disk.current.isDownloaded { keep(result) }
        download(received, heads)
    }

    private func keep(_ result: HeadNews.Result) {
        for store in 0..<world.conditions.stores where !device.disk.replica(store).isDownloaded {
            _ = join(store, JoinedStates())
        }
        device.disk.current.isDownloaded = true
        device.disk.current.heads = result.heads.subtracting(result.headsWithGaps)
        device.disk.current.own = own.published ?? device.disk.current.own
    }

    private var known: Set<Bits128> {
        if own.readsAnew { return [] }
        var known = device.disk.current.heads.union(joinedHeads)
        if let published { known.insert(published.digest) }
        return known
    }

    /// Reads what is new of a store.
    /// - Returns: the states, and whether all that has to be there is.
    private func read(
        _ store: Int, _ news: inout HeadNews, _ heads: Heads, _ segments: [CoreSegment]
    ) -> (JoinedStates, isWhole: Bool) {
        let identifier = Names.stores[store]
        var (states, lacking) = (JoinedStates(), news.states[identifier] ?? [])
        for (_, head) in heads where store < head.parts.count && lacking.contains(head.parts[store].digest) {
            guard let base = base(of: head.parts[store], segments) else { continue }
            states.join(head.parts[store].state(over: base))
            lacking.remove(head.parts[store].digest)
            news.noteRead(head.parts[store].digest, of: identifier)
        }
        return (states, news.passOver(lacking, of: identifier, read: states.state.vector))
    }

    /// Joins what is new of a store; what is not there of one that is still to arrive is nothing.
    func join(_ store: Int, _ news: JoinedStates?, isDelta: Bool = false) -> Bool {
        let isArriving = !device.disk.replica(store).isDownloaded
        if news == nil, !isArriving { return false }
        if let news { leaveSharedOrigins(store, news.state, isArriving: isArriving, isDelta: isDelta) }
        let replica = device.disk.replica(store)
        let plan = Join.plan(
            replica, taking: news?.state(over: replica) ?? StoreState(), isFirstDownload: isArriving, isDelta: isDelta)
        device.disk.update(store) {
            $0.carryOut(plan)
            $0.isDownloaded = true
        }
        return isArriving || !plan.changesNothing(in: replica.vector)
    }

    private func leaveSharedOrigins(_ store: Int, _ news: StoreState, isArriving: Bool, isDelta: Bool) {
        guard Rule.leaveClones.isOn, let origin = device.disk.origin else { return }
        // Tombstones are forgotten at any time here.
        let isForgetful = isArriving || world.hasForgotten || world.conditions.hazards.contains(.forget)
        let times: Range<UInt64> = isForgetful ? 0..<0 : 0..<UInt64.max
        var shared = Join.sharedOrigins(
            origin, device.disk.replica(store), in: news, writtenIn: times, isDelta: isDelta)
        if isArriving { shared.formUnion(Join.sharedOrigins(ofDefaults: device.disk.replica(store), in: news)) }
        let left = shared.intersection(device.disk.formerOrigins + [origin])
        if !shared.isEmpty { reportClone("a write by another device under an own origin") }
        if left.isEmpty { return }
        isMissing = true
        device.leave(left)
    }

    /// Leaving an origin for no reason may bring back what was removed.
    func reportClone(_ evidence: String) {
        if !world.conditions.hazards.contains(.fork) { world.report("\(evidence) was seen where there is no clone") }
    }

    private func base(of part: CoreHead.Part, _ segments: [CoreSegment]) -> [Key: Entry]? {
        guard let name = part.segment else { return [:] }
        return segments.first { $0.name == name }?.entries ?? (Rule.wholeStates.isOn ? nil : [:])
    }

    private func download(_ received: Bool, _ heads: Heads) {
        guard mayUpload else {
            return passed(received: received, uploaded: false)
        }
        upload(received, heads)
    }

    func passed(received: Bool, uploaded: Bool) {
        let isDownloaded = device.disk.current.isDownloaded
        schedule?.passed(
            timeline.now, received: received || !isDownloaded, uploaded: uploaded,
            isPending: isDownloaded && wantsUpload)
        if uploaded, !device.isPending { world.noteSettled(device) }
        endCycle()
    }

    // MARK: Upload

    /// Something is to be uploaded now.
    var mayUpload: Bool { (uploads || isPublicationDue) && device.disk.current.isDownloaded && wantsUpload }

    private var wantsUpload: Bool {
        if device.isPending || isMissing || isPublicationDue { return true }
        return !Rule.noEcho.isOn && device.disk.current.replicas.contains { $0.sequence > $0.published }
    }

    /// A day has passed since the last upload by the device's clock, or there was none.
    private var isPublicationDue: Bool {
        let (pushed, now) = (device.disk.current.pushed, world.now(device))
        guard Rule.dailyHead.isOn, device.disk.current.isDownloaded else { return false }
        return max(now, pushed) - min(now, pushed) >= day / millisecond
    }

    func recordPublication() { if Rule.recordFirst.isOn { device.disk.publications += 1 } }

    private func upload(_ received: Bool, _ heads: Heads) {
        guard let origin = device.disk.origin else { return }
        recordPublication()
        let there = head(device.disk.headName, in: heads)
        let last = max(published?.origin == origin ? published?.sequence ?? 0 : 0, there?.sequence ?? 0)
        let sequence = max(last + 1, device.disk.publications)
        var (parts, segments) = ([CoreHead.Part](), [CoreSegment]())
        for store in 0..<world.conditions.stores { parts.append(part(store, &segments)) }
        let head = CoreHead(origin: origin, sequence: sequence, parts: parts)
        let marks = device.disk.current.replicas.map(\.sequence)
        timeline.after(5 * millisecond) { [self] in
            guard client.isAlive else { return }
            if Rule.syncFirst.isOn { device.synced = device.disk }
            let segments = segments.sorted { $0.name < $1.name }[...]
            if Rule.segmentsFirst.isOn { return put(segments) { [self] in put(head, marks, received) } }
            put(head, marks, received, thenSegments: segments)
        }
    }

    /// Cuts a store: what changed is in the tail until there is too much of it.
    private func part(_ store: Int, _ segments: inout [CoreSegment]) -> CoreHead.Part {
        let state = device.disk.replica(store).state
        let former = published.flatMap { store < $0.parts.count ? $0.parts[store] : nil }
        var part = CoreHead.Part(digest: Digest.of(state), vector: state.vector, tail: state.entries, removed: [])
        if let name = former?.segment, let base = publishedBase[name]?.entries, !isMissing {
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

    private func put(_ segments: ArraySlice<CoreSegment>, then next: @escaping () -> Void) {
        guard let first = segments.first else { return next() }
        place?.put(first.name.string, .segment(first), client) { [self] in
            guard proceed($0) != nil else { return }
            put(segments.dropFirst(), then: next)
        }
    }

    private func put(
        _ head: CoreHead, _ marks: [UInt64], _ received: Bool, thenSegments segments: ArraySlice<CoreSegment> = []
    ) {
        for (store, part) in head.parts.enumerated() { checkOnDisk(part.vector, store) }
        guard head.origin == device.disk.origin else { return passed(received: received, uploaded: false) }
        own.noteWriting(head.digest)
        place?.put(device.disk.headName, .head(head), client) { [self] in
            guard proceed($0) != nil else { return }
            published = head
            own.notePublished(head.identity)
            isMissing = false
            if head.origin == device.disk.origin {
                device.disk.current.pushed = world.now(device)
                for (store, sequence) in marks.enumerated() { mark(store, sequence) }
            }
            put(segments) { [self] in removeFormerHeads(retiredHeads[...], received) }
        }
    }

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

    /// The origins under which nobody writes any more, as far as this device knows.
    private var retiredHeads: [Origin] {
        if Rule.retiredHeads.isOn { return device.disk.formerOrigins }
        let names = place?.names(seenBy: device.number) ?? []
        return names.compactMap { Origin($0.dropFirst(2)) }.filter { $0 != device.disk.origin }
    }

    private func mayRemove(_ blob: CoreBlob?, _ origin: Origin) -> Bool {
        if case .head(let head)? = blob {
            let count = device.disk.formerCounts[head.origin] ?? 0
            return own.mayRetire(head.identity, upTo: count, joined: joinedHeads.union(device.disk.current.heads))
        }
        return own.mayRetireUnreadable(origin, world.now(device) * 1000)
    }

    /// Removes the heads of origins under which this device writes no more.
    private func removeFormerHeads(_ origins: ArraySlice<Origin>, _ received: Bool) {
        guard let origin = origins.first else { return passed(received: received, uploaded: true) }
        let name = "h/\(origin)"
        guard let place, place.has(name, seenBy: device.number) else {
            return removeFormerHeads(origins.dropFirst(), received)
        }
        place.get(name, client) { [self] in
            guard let blob = proceed($0) else { return }
            if !mayRemove(blob, origin) { return removeFormerHeads(origins.dropFirst(), received) }
            place.delete(name, client) { [self] in
                if proceed($0) != nil { removeFormerHeads(origins.dropFirst(), received) }
            }
        }
    }
}

extension CoreDevice {
    /// Goes on under a new origin, since somebody else writes under these of its origins as well.
    func leave(_ left: Set<Origin>) {
        world.leftOrigins += 1
        disk.leave(for: drawOrigin())
        disk.redot(from: left)
    }
}
