// SPDX-License-Identifier: Apache-2.0

// What a process knows of the domains of its person: a copy of each layer, what is managed, arguments, registered
// values, and the search lists that are flattened from them.
//
// Locks, in the order in which they are taken: the one of this object, then that of a search list. Nothing of the app
// is called while one is held: what is to be told is collected, and told afterwards.

internal import Foundation
internal import Glibc
internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import Synchronization
internal import UbiquitousStore

/// The domains of one person on one bus, in this process.
final class DefaultsProcess: Sendable {
    /// Observers are called here.
    static let queue = DispatchQueue(label: "org.example.UbiquitousStore.defaults")

    /// How long the first read may wait for a service that is there and doesn't answer, in seconds.
    static let readPatience: TimeInterval = 5
    /// How long ``synchronize()`` and the end of the process may wait, in seconds.
    static let writePatience: TimeInterval = 1

    let link: DefaultsLink
    /// `system`, `session` or an address.
    let bus: String
    /// Whose domains they are.
    let uid: UInt32
    /// The path of this program; `nil` if its name can't be a domain's.
    let program: String?
    /// Held while outboxes are changed.
    private let filling = Mutex(())
    /// Where outboxes are; `nil`: there is no place for them.
    private let outboxes: String?
    let state: Mutex<State>
    private let lastTicket = Atomic<Ticket>(0)

    struct State {
        var layers: [SearchList.Layer: LayerCopy] = [:]
        var managed: [Text: ManagedDomain] = [:]
        /// Domains that were asked for: opened once their answer is here, or there is none to be had.
        var domains: [Text: Gate] = [:]
        var argument: [Text: Value]
        var registration: [Text: Value]
        var boxes: [ObjectIdentifier: WeakBox] = [:]
        var waiting: [Ticket: @Sendable ((any Error)?) -> Void] = [:]
        /// What this process has put into outboxes and not seen in the service since.
        var boxed: [Text: [Outbox.Write]] = [:]
        /// The app's own domain, if keys of it may roam.
        var roaming: [Text: Roaming] = [:]
        /// Whether somebody has signed in was asked once.
        var hasAskedForAccount = false
        /// The service has not been found, and nothing is waited for.
        var isAbsent = false
    }

    struct WeakBox {
        weak var box: SearchBox?
        /// Values before changes of the store that it has not announced yet.
        var untold: [Text: Value?] = [:]
    }

    /// What is done after the lock is released.
    fileprivate struct Effects {
        var changes: [(box: SearchBox, change: DefaultsChange)] = []
        var finished: [(@Sendable ((any Error)?) -> Void, (any Error)?)] = []
        /// Held until the lock is released: who lets go of one last takes the lock.
        var held: [SearchBox] = []

        mutating func note(_ box: SearchBox, _ changes: [SearchList.Change], _ reason: UInt32) {
            if !changes.isEmpty { self.changes.append((box, DefaultsChange(reason: reason, changes: changes))) }
        }
    }

    private init(bus: String, uid: UInt32, outboxes: String?) {
        (self.bus, self.uid) = (bus, uid)
        let path = ProcessDefaults.program
        program =
            uid == geteuid() && ProcessDefaults.isDomain(path.split(separator: "/").last.map(String.init) ?? "")
            ? path : nil
        link = DefaultsLink(bus == "system" ? .system : bus == "session" ? .session : .address(bus), uid)
        self.outboxes = outboxes
        state = Mutex(
            State(argument: ProcessDefaults.arguments(), registration: ProcessDefaults.registered()))
    }

    private struct Key: Hashable {
        let bus: String
        let uid: UInt32
    }

    private static let all = Mutex<[Key: DefaultsProcess]>([:])

    /// The one of a bus: `system`, `session` or an address.
    ///
    /// - Parameters:
    ///   - uid: whose domains; another person's are root's to use.
    ///   - outboxes: the directory of the outboxes; `nil`: the person's. There are none for other people.
    static func on(bus: String, uid: UInt32 = geteuid(), outboxes: String? = nil) -> DefaultsProcess {
        let process = all.withLock { all in
            let key = Key(bus: bus, uid: uid)
            if let process = all[key] { return process }
            let own = uid == geteuid() ? outboxes ?? OutboxFile.standardDirectory() : nil
            let process = DefaultsProcess(bus: bus, uid: uid, outboxes: own)
            all[key] = process
            return process
        }
        process.link.start(process)
        return process
    }

    // MARK: Search lists

    func add(_ box: SearchBox) {
        let domains = state.withLock { state in
            state.boxes[ObjectIdentifier(box)] = WeakBox(box: box)
            box.list.withLock { list in
                for domain in list.domains { Self.fill(&list, domain, state) }
                _ = list.replace(.ubiquitous, by: state.roaming[box.own]?.values ?? [:])
                _ = list.replace(.argument, by: state.argument)
                _ = list.replace(.registration, by: state.registration)
            }
            return box.list.withLock { $0.domains }
        }
        need(domains)
    }

    func remove(_ box: ObjectIdentifier) {
        state.withLock { $0.boxes[box] = nil }
    }

    /// Gives a list what is known of a domain.
    private static func fill(_ list: inout SearchList, _ domain: Text, _ state: State) {
        for layer in [SearchList.Layer.host(domain), .domain(domain)] {
            _ = list.replace(layer, by: state.layers[layer]?.visible ?? [:])
        }
        let managed = state.managed[domain] ?? ManagedDomain()
        _ = list.replace(.forced(domain), by: managed.forced)
        _ = list.replace(.recommended(domain), by: managed.recommended)
        _ = list.lock(domain, managed.locked)
    }

    /// Has a list search other suites.
    func search(_ suites: [Text], _ box: SearchBox) {
        need(suites)
        let changes = state.withLock { state in
            box.list.withLock { list in
                for domain in suites where !list.suites.contains(domain) { Self.fill(&list, domain, state) }
                return list.search(suites)
            }
        }
        box.searchesMore()
        if !changes.isEmpty { box.tell(DefaultsChange(reason: DefaultsChange.own, changes: changes)) }
    }

    // MARK: Domains

    /// Has domains opened that are not yet.
    func need(_ domains: [Text]) {
        let (missing, isAbsent) = state.withLock { state in
            let missing = domains.filter { state.domains[$0] == nil }
            for domain in missing {
                let gate = Gate()
                if state.isAbsent { gate.open() }
                state.domains[domain] = gate
            }
            return (missing, state.isAbsent)
        }
        if missing.isEmpty { return }
        if isAbsent { preload(missing) }
        EventLoop.task { [link] in link.domainsWanted() }
    }

    /// The domains that are wanted.
    var wanted: [Text] { state.withLock { Array($0.domains.keys) } }

    /// Waits until domains are here, for a while.
    func awaitDomains(_ domains: [Text]) {
        need(domains)
        // The bus's own thread would wait for itself.
        if EventLoop.shared.isIsolatingCurrentContext() == true { return }
        let gates = state.withLock { state in domains.compactMap { state.domains[$0] } }
        let end = Date(timeIntervalSinceNow: Self.readPatience)
        for gate in gates { _ = gate.wait(atMost: max(0, end.timeIntervalSinceNow)) }
    }

    /// A domain's layers have arrived, with what is managed of it.
    func opened(_ domain: OpenedDomain) {
        change(reason: DefaultsChange.otherProcess) { state, update in
            for (layer, snapshot) in [
                (SearchList.Layer.domain(domain.name), domain.values), (.host(domain.name), domain.host),
            ] {
                guard let snapshot else { continue }
                let keys = state.layers[layer, default: LayerCopy()].loaded(
                    snapshot.generation, isComplete: true, snapshot.values)
                update.layer(layer, keys, state)
            }
            if let managed = domain.managed { update.managed(domain.name, managed, &state) }
            state.isAbsent = false
        }
        if let store = domain.store, !store.isEmpty || mirror(domain.name) != nil {
            roam(domain.name, store: store.isEmpty ? nil : store, keys: domain.managed?.ubiquitous ?? .none)
        }
        state.withLock { $0.domains[domain.name] }?.open()
    }

    /// The service has said of domains all that it will: who waits for them goes on.
    func answered(_ domains: some Sequence<Text>) {
        for gate in state.withLock({ state in domains.compactMap { state.domains[$0] } }) { gate.open() }
    }

    /// There is no way to the service now: who waits goes on with what is here.
    func lost() {
        let domains = state.withLock { state in
            for layer in state.layers.keys { state.layers[layer]?.lost() }
            state.isAbsent = true
            return Array(state.domains.keys)
        }
        preload(domains)
        for gate in state.withLock({ Array($0.domains.values) }) { gate.open() }
    }

    /// Shows what outboxes have of domains of which nothing else is known.
    private func preload(_ domains: [Text]) {
        for domain in domains {
            let isUnknown = state.withLock { state in state.layers[.domain(domain)]?.generation == nil }
            guard isUnknown, let file = outbox(domain), file.exists, let outbox = file.read() else {
                continue
            }
            change(reason: DefaultsChange.otherProcess) { state, update in
                let roaming = outbox.writes.filter {
                    $0.store != nil && $0.store?.string == state.roaming[domain]?.store
                }
                state.roaming[domain]?.preloaded = Changes(roaming.map { ($0.key, $0.value) }) { $1 }
                update.roaming(domain, &state)
                for isHost in [false, true] {
                    let layer: SearchList.Layer = isHost ? .host(domain) : .domain(domain)
                    let writes = outbox.writes.filter { $0.isHost == isHost && $0.store == nil }
                    let changes = Changes(writes.map { ($0.key, $0.value) }) { $1 }
                    state.layers[layer, default: LayerCopy()].preload(changes)
                    update.layer(layer, changes.keys, state)
                }
            }
        }
    }

    /// The file of a domain's outbox.
    func outbox(_ domain: Text) -> OutboxFile? { outboxes.map { OutboxFile(domain: domain, directory: $0) } }

    func contents(of layer: SearchList.Layer) -> [Text: Value] {
        state.withLock { $0.layers[layer]?.visible ?? [:] }
    }

    // MARK: Writing

    /// Changes a layer, here at once, and in the service soon.
    /// - Returns: whether a stored value is another one now.
    @discardableResult
    func write(
        _ layer: SearchList.Layer, _ changes: Changes, isWhole: Bool = false,
        done: (@Sendable ((any Error)?) -> Void)? = nil
    ) -> Bool {
        ExitFlush.arm()
        let ticket = done.map { _ in lastTicket.add(1, ordering: .relaxed).newValue }
        let isNews = change(reason: DefaultsChange.own) { state, update in
            let visible = state.layers[layer]?.visible ?? [:]
            let news = changes.filter { visible[$0.key] != $0.value }
            if let ticket { state.waiting[ticket] = done }
            state.layers[layer, default: LayerCopy()].write(changes, isWhole: isWhole, ticket: ticket)
            update.layer(layer, news.keys, state)
            return !news.isEmpty
        }
        EventLoop.task { [link] in await link.send(layer) }
        return isNews
    }

    /// Changes a layer to have these values and no others, all or nothing.
    @discardableResult
    func replace(_ layer: SearchList.Layer, by values: [Text: Value]) -> Bool {
        var changes = Changes(values.map { ($0, .some($1)) }) { $1 }
        for key in contents(of: layer).keys where values[key] == nil { changes[key] = .some(nil) }
        return changes.isEmpty ? false : write(layer, changes, isWhole: true)
    }

    /// Replaces or merges what the app registered, or its arguments.
    @discardableResult
    func setVolatile(_ layer: SearchList.Layer, merging: Bool = false, _ values: [Text: Value]) -> Bool {
        change(reason: DefaultsChange.own) { state, update in
            let path: WritableKeyPath<State, [Text: Value]> = layer == .argument ? \.argument : \.registration
            let former = state[keyPath: path]
            state[keyPath: path] = merging ? former.merging(values) { $1 } : values
            update.replace(layer, state[keyPath: path], state)
            return former != state[keyPath: path]
        }
    }

    func volatile(_ layer: SearchList.Layer) -> [Text: Value] {
        state.withLock { layer == .argument ? $0.argument : $0.registration }
    }

    // MARK: Answers

    func nextCall(_ layer: SearchList.Layer) -> LayerCopy.Call? { state.withLock { $0.layers[layer]?.nextCall() } }

    func acknowledged(_ layer: SearchList.Layer, _ generation: UInt64) {
        change(reason: DefaultsChange.otherProcess) { state, update in
            let before = state.layers[layer]?.pending ?? [:]
            let tickets = state.layers[layer]?.acknowledged(generation) ?? []
            update.layer(layer, before.keys, state)
            update.finish(tickets, nil, &state)
        }
        if let domain = layer.place?.domain { emptyOutbox(domain) }
    }

    /// Takes out of an outbox what the service has by now, so that nobody delivers it over what is newer.
    func emptyOutbox(_ domain: Text) {
        if hasBoxed(domain) { Self.queue.async { [self] in filling.withLock { _ in removeTaken(domain) } } }
    }

    private func removeTaken(_ domain: Text) {
        let taken = state.withLock { state -> [Outbox.Write] in
            let boxed = state.boxed[domain] ?? []
            let pending = state.pendingWrites(of: domain)
            state.boxed[domain] = boxed.filter { write in pending.contains { $0.isSame(as: write) } }
            return boxed.filter { write in !pending.contains { $0.isSame(as: write) } }
        }
        if !taken.isEmpty { outbox(domain)?.remove(taken) }
    }

    /// Whether this process has put something into an outbox that it has not seen in the service since.
    func hasBoxed(_ domain: Text) -> Bool { state.withLock { $0.boxed[domain]?.isEmpty == false } }

    /// An outbox has been delivered: what is no longer in it need not be sent.
    func outboxDelivered(_ domain: Text) {
        guard state.withLock({ $0.boxed[domain]?.isEmpty == false }), let file = outbox(domain) else { return }
        let left = file.read()?.writes ?? []
        change(reason: DefaultsChange.otherProcess) { state, update in
            let gone = state.boxed[domain, default: []].filter { !left.contains($0) }
            state.boxed[domain]?.removeAll { !left.contains($0) }
            for write in gone where write.store == nil {
                let layer: SearchList.Layer = write.isHost ? .host(domain) : .domain(domain)
                state.layers[layer]?.delivered(write.key, write.value)
                update.layer(layer, [write.key], state)
            }
        }
    }

    func refused(_ layer: SearchList.Layer, _ error: any Error) {
        change(reason: DefaultsChange.refused, error: error) { state, update in
            guard let write = state.layers[layer]?.refused() else { return }
            let names = write.changes.keys.sorted().map { "\"\($0)\"" }.joined(separator: ", ")
            logDefaults("\(names) was taken back, since the service refuses it: \(error)")
            update.layer(layer, write.changes.keys, state)
            update.finish(write.tickets, error, &state)
        }
        if let domain = layer.place?.domain { emptyOutbox(domain) }
        guard (error as? UbiquitousStoreError)?.code == .quotaExceeded else { return }
        Self.queue.async { UserDefaults.postSizeLimitExceeded() }
    }

    func loaded(_ layer: SearchList.Layer, _ snapshot: Snapshot) {
        change(reason: DefaultsChange.otherProcess) { state, update in
            let keys = state.layers[layer, default: LayerCopy()].loaded(
                snapshot.generation, isComplete: snapshot.isComplete, snapshot.values, removed: snapshot.removed)
            update.layer(layer, keys, state)
        }
    }

    /// What is managed of the app's domain is another.
    func managed(_ domain: OpenedDomain) {
        guard let managed = domain.managed else { return }
        self.managed(domain.name, managed)
        roam(domain.name, store: domain.store.flatMap { $0.isEmpty ? nil : $0 }, keys: managed.ubiquitous ?? .none)
    }

    func managed(_ domain: Text, _ managed: ManagedDomain) {
        change(reason: DefaultsChange.managed) { state, update in update.managed(domain, managed, &state) }
    }

    func managed(_ domain: Text) -> ManagedDomain { state.withLock { $0.managed[domain] ?? ManagedDomain() } }

    func generation(_ layer: SearchList.Layer) -> UInt64 { state.withLock { $0.layers[layer]?.generation ?? 0 } }

    // MARK: Waiting

    /// Layers with writes that the service has not acknowledged.
    var unsettled: [SearchList.Layer] { state.withLock { $0.layers.filter { !$0.value.isSettled }.map(\.key) } }

    /// Whether the service has not acknowledged everything.
    var isUnsettled: Bool { !unsettled.isEmpty || !unsettledMirrors.isEmpty }

    private var unsettledMirrors: [StoreMirror] {
        state.withLock { $0.roaming.values.compactMap(\.mirror) }.filter { !$0.pending.changes.isEmpty }
    }

    /// Waits until the service has everything that was written, and puts what it hasn't into outboxes.
    ///
    /// - Returns: whether everything is in the service or in an outbox.
    func settle(atMost seconds: TimeInterval) -> Bool {
        let isAbsent = state.withLock { $0.isAbsent }
        if !isAbsent, EventLoop.shared.isIsolatingCurrentContext() != true {
            let end = Date(timeIntervalSinceNow: seconds)
            for layer in unsettled {
                let gate = Gate()
                let ticket = lastTicket.add(1, ordering: .relaxed).newValue
                let waits = state.withLock { state in
                    guard state.layers[layer]?.wait(ticket) == true else { return false }
                    state.waiting[ticket] = { _ in gate.open() }
                    return true
                }
                if waits { _ = gate.wait(atMost: max(0, end.timeIntervalSinceNow)) }
            }
            for mirror in unsettledMirrors {
                let gate = Gate()
                Task {
                    await mirror.settle()
                    gate.open()
                }
                _ = gate.wait(atMost: max(0, end.timeIntervalSinceNow))
            }
        }
        return fillOutboxes()
    }

    /// Puts what the service has not acknowledged into outboxes.
    func fillOutboxes() -> Bool {
        // One at a time: what is older must not be written over what is newer.
        filling.withLock { _ in
            let domains = state.withLock { Set($0.layers.keys.compactMap(\.place?.domain)).union($0.roaming.keys) }
            return domains.reduce(true) { fillOutbox($1) && $0 }
        }
    }

    private func fillOutbox(_ domain: Text) -> Bool {
        let writes = state.withLock { state in
            let writes = state.pendingWrites(of: domain, time: Int64(Date().timeIntervalSince1970 * 1_000_000))
            // From now on any process may deliver them.
            for isHost in [false, true] {
                let keys = writes.filter { $0.isHost == isHost && $0.store == nil }.map(\.key)
                state.layers[isHost ? .host(domain) : .domain(domain)]?.keptInOutbox(keys)
            }
            return writes
        }
        if writes.isEmpty { return true }
        guard let file = outbox(domain), file.add(writes) else { return false }
        state.withLock { state in
            let others = state.boxed[domain, default: []].filter { old in !writes.contains { $0.isAbout(old) } }
            state.boxed[domain] = others + writes
        }
        // The service may have taken some of them meanwhile.
        removeTaken(domain)
        return true
    }

    /// Waits until everything that was set is on the disk, in the service's database or in outboxes.
    func synchronize(_ domain: Text) -> Bool {
        let isKept = settle(atMost: Self.writePatience)
        guard isKept, !isUnsettled, EventLoop.shared.isIsolatingCurrentContext() != true,
            !state.withLock({ $0.isAbsent })
        else { return isKept }
        let gate = Gate()
        EventLoop.task { [link] in gate.open((try? await link.synchronize(domain)) != nil) }
        return gate.wait(atMost: Self.writePatience) ?? false
    }

    /// The domains that have values here or in the service, sorted.
    func domainNames() -> [String] {
        var names = state.withLock { state in
            Set(state.layers.filter { !$0.value.visible.isEmpty }.compactMap(\.key.place?.domain))
        }
        let emptied = state.withLock { state in
            Set(state.layers.filter { $0.value.visible.isEmpty }.compactMap(\.key.place?.domain)).subtracting(names)
        }
        if EventLoop.shared.isIsolatingCurrentContext() != true, !state.withLock({ $0.isAbsent }) {
            let (gate, listed) = (Gate(), ListedDomains())
            EventLoop.task { [link] in
                let names = (try? await link.listDomains()) ?? []
                listed.names.withLock { $0 = names.map { Text($0) } }
                gate.open()
            }
            _ = gate.wait(atMost: Self.writePatience)
            names.formUnion(listed.names.withLock { $0 }.filter { !emptied.contains($0) })
        }
        return names.sorted().map(\.string)
    }

    /// The same on the queue of the observers.
    func fillOutboxesSoon() {
        Self.queue.async { [self] in if isUnsettled { _ = fillOutboxes() } }
    }

    static func everyProcess() -> [DefaultsProcess] { all.withLock { Array($0.values) } }

    // MARK: Under the lock

    /// Collects what an event does to the search lists.
    struct Update {
        let reason: UInt32
        fileprivate var effects = Effects()

        mutating func layer(_ layer: SearchList.Layer, _ keys: some Sequence<Text>, _ state: borrowing State) {
            let visible = state.layers[layer]?.visible ?? [:]
            let changes = Changes(keys.map { ($0, visible[$0]) }) { $1 }
            if changes.isEmpty { return }
            each(state) { $0.change(layer, changes) }
        }

        mutating func replace(_ layer: SearchList.Layer, _ values: [Text: Value], _ state: borrowing State) {
            each(state) { $0.replace(layer, by: values) }
        }

        mutating func managed(_ domain: Text, _ managed: ManagedDomain, _ state: inout State) {
            if state.managed[domain] == managed { return }
            state.managed[domain] = managed
            each(state) { list in
                list.replace(.forced(domain), by: managed.forced)
                    + list.replace(.recommended(domain), by: managed.recommended) + list.lock(domain, managed.locked)
            }
        }

        /// Takes over what the store has of the keys that roam.
        ///
        /// - Parameters:
        ///   - keys: those that changed; `nil`: any may have.
        ///   - isTold: false if the store will announce the change, with its reason.
        mutating func roaming(_ domain: Text, _ state: inout State, _ keys: [Text]? = nil, isTold: Bool = true) {
            guard let roaming = state.roaming[domain] else { return }
            for (id, box) in boxes(state) where box.own == domain {
                let changes = box.list.withLock { list in
                    keys.map { list.change(.ubiquitous, roaming.values(of: $0)) }
                        ?? list.replace(.ubiquitous, by: roaming.values)
                }
                for change in changes {
                    let former = state.boxes[id]?.untold[change.key] ?? change.old
                    state.boxes[id]?.untold[change.key] = isTold ? nil : .some(former)
                }
                if isTold { effects.note(box, changes, reason) }
            }
        }

        /// The store says why keys changed.
        mutating func announce(_ keys: [Text], isRefusal: Bool, of domain: Text, _ state: inout State) {
            for (id, box) in boxes(state) where box.own == domain {
                let changes = keys.compactMap { key -> SearchList.Change? in
                    let new = box.list.withLock { $0[key] }
                    let former = state.boxes[id]?.untold.removeValue(forKey: key)
                    if former == nil && !isRefusal { return nil }
                    let change = SearchList.Change(key: key, old: former ?? new, new: new)
                    return change.old != change.new || isRefusal ? change : nil
                }
                effects.note(box, changes, reason)
            }
        }

        mutating func finish(_ tickets: [Ticket], _ error: (any Error)?, _ state: inout State) {
            for ticket in tickets {
                if let done = state.waiting.removeValue(forKey: ticket) { effects.finished.append((done, error)) }
            }
        }

        private mutating func each(_ state: borrowing State, _ body: (inout SearchList) -> [SearchList.Change]) {
            for (_, box) in boxes(state) { effects.note(box, box.list.withLock { body(&$0) }, reason) }
        }

        private mutating func boxes(_ state: borrowing State) -> [(ObjectIdentifier, SearchBox)] {
            let boxes = state.boxes.compactMap { id, weak in weak.box.map { (id, $0) } }
            effects.held += boxes.map(\.1)
            return boxes
        }
    }

    @discardableResult
    func change<T>(
        reason: UInt32, error: (any Error)? = nil, _ body: (inout State, inout Update) -> T
    ) -> T {
        var update = Update(reason: reason)
        let result = state.withLock { state in body(&state, &update) }
        for (box, change) in update.effects.changes {
            var change = change
            change.error = error
            box.tell(change)
        }
        for (done, error) in update.effects.finished { done(error) }
        withExtendedLifetime(update.effects.held) {}
        return result
    }
}

extension DefaultsProcess.State {
    /// What the service has not acknowledged of a domain.
    fileprivate func pendingWrites(of domain: Text, time: Int64 = 0) -> [Outbox.Write] {
        [false, true].flatMap { isHost -> [Outbox.Write] in
            guard let copy = layers[isHost ? .host(domain) : .domain(domain)] else { return [] }
            return copy.pending.map { key, value in
                Outbox.Write(
                    key: key, value: value, isHost: isHost, time: time, generation: copy.known(key),
                    unanswered: copy.unanswered(key))
            }
        } + (roaming[domain]?.pendingWrites(time: time) ?? [])
    }
}

extension Outbox.Write {
    /// Whether both are of the same key.
    fileprivate func isAbout(_ other: Self) -> Bool {
        key == other.key && isHost == other.isHost && store == other.store
    }

    /// Whether both make the same of it.
    fileprivate func isSame(as other: Self) -> Bool { isAbout(other) && value == other.value }
}

extension SearchList.Layer {
    /// The domain of a layer that the service has, and whether it is this host's.
    var place: LayerPlace? {
        switch self {
        case .host(let domain): LayerPlace(domain, isHost: true)
        case .domain(let domain): LayerPlace(domain)
        default: nil
        }
    }
}

/// What the service lists, for the thread that waits for it.
private final class ListedDomains: Sendable {
    let names = Mutex<[Text]>([])
}
