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
    private var written: Set<UInt64> = []
    private var published: CoreHead?
    private var publishedBase: [CoreSegment.Name: CoreSegment] = [:]
    private var lookedUp: Set<Origin> = []
    private var inherited: [Origin: UInt64] = [:]
    /// Since when heads under former origins can't be read.
    private var unreadable: [Origin: UInt64] = [:]
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
        (written, published, publishedBase) = (other.written, other.published, other.publishedBase)
        (lookedUp, inherited) = (other.lookedUp, other.inherited)
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
        switch classify(head(device.disk.headName, in: heads), origin) {
        case .asPublished: isMissing = isFormerLost(heads, origin)
        case .missing, .outdated: isMissing = true
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

    /// Whether nothing was published under the present origin yet, and what was under a former one is there no more.
    private func isFormerLost(_ heads: Heads, _ origin: Origin) -> Bool {
        guard let former = device.disk.current.own, former.origin != origin, published == nil,
            head(device.disk.headName, in: heads) == nil
        else { return false }
        return (head(CoreHead.name(of: former.origin), in: heads)?.sequence ?? 0) < former.sequence
    }

    private func classify(_ found: CoreHead?, _ origin: Origin) -> OwnPublication {
        let cursor = device.disk.current.own
        let expected = published?.origin == origin ? published?.digest : cursor?.origin == origin ? cursor?.digest : nil
        if lookedUp.insert(origin).inserted, published?.origin != origin {
            inherited[origin] = max(
                cursor?.origin == origin ? cursor?.sequence ?? 0 : 0, found?.sequence ?? 0,
                Rule.countedHeads.isOn ? device.disk.publications : 0)
        }
        guard let found else { return expected == nil ? .asPublished : .missing }
        if found.digest == expected {
            if published == nil { published = found }
            return .asPublished
        }
        if written.contains(found.digest) { return .missing }
        return found.sequence <= inherited[origin] ?? 0 ? .missing : .foreign
    }

    private func join(_ heads: Heads, _ segments: [CoreSegment]) {
        var (joined, received) = ([UInt64](), false)
        for (_, head) in heads {
            let isLacking = { !head.parts.allSatisfy { self.isThere($0, in: segments) } }
            if isKnown(head) || !Rule.wholeStates.isOn || !isLacking() || isDominated(head, heads, segments) {
                joined.append(head.digest)
            }
        }
        // Nobody waits for what a copy of a head lacks.
        let isComplete = heads.allSatisfy { name, head in
            joined.contains(head.digest) || name != CoreHead.name(of: head.origin)
        }
        if isComplete { lookedAt = seen }
        // The account's values arrive all at once.
        if isComplete || device.disk.current.isDownloaded {
            let news = heads.filter { !isKnown($0.head) }
            for store in 0..<world.conditions.stores { if join(store, news, segments) { received = true } }
            device.disk.current.isDownloaded = true
            device.disk.current.heads = joined
            device.disk.current.own = published.map { ($0.origin, $0.digest, $0.sequence) } ?? device.disk.current.own
        }
        download(received, heads)
    }

    private func isKnown(_ head: CoreHead) -> Bool {
        device.disk.current.heads.contains(head.digest) || head.digest == published?.digest
    }

    /// Others, that can be read, have taken in all that a head has.
    private func isDominated(_ head: CoreHead, _ heads: Heads, _ segments: [CoreSegment]) -> Bool {
        head.parts.enumerated().allSatisfy { store, part in
            var vector = VersionVector()
            for (_, other) in heads where store < other.parts.count && isThere(other.parts[store], in: segments) {
                vector.formUnion(other.parts[store].vector)
            }
            return vector.isSuperset(of: part.vector)
        }
    }

    private func join(_ store: Int, _ heads: Heads, _ segments: [CoreSegment]) -> Bool {
        var news: JoinedStates?
        for (_, head) in heads where store < head.parts.count {
            let part = head.parts[store]
            guard let base = base(of: part, segments) else { continue }
            let state = part.state(over: base)
            if news?.join(state) == nil { news = JoinedStates(state) }
        }
        return join(store, news)
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
        written.insert(head.digest)
        place?.put(device.disk.headName, .head(head), client) { [self] in
            guard proceed($0) != nil else { return }
            published = head
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

    /// It was joined, and is not later than all that this device published under its origin.
    private func mayRemove(_ head: CoreHead) -> Bool {
        let isOwn = head.sequence <= device.disk.formerCounts[head.origin] ?? 0 || !Rule.retiredHeads.isOn
        return isOwn && (device.disk.current.heads.contains(head.digest) || written.contains(head.digest))
    }

    /// A head that is torn now may be whole later, with what no other device has.
    private func isUnreadableForADay(_ origin: Origin) -> Bool {
        let now = world.now(device)
        let since = min(unreadable[origin] ?? now, now)
        unreadable[origin] = since
        return now - since >= day / millisecond
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
            let isRemovable = if case .head(let head)? = blob { mayRemove(head) } else { isUnreadableForADay(origin) }
            if !isRemovable { return removeFormerHeads(origins.dropFirst(), received) }
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
