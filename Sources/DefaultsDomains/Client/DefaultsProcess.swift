// SPDX-License-Identifier: Apache-2.0

// Locks, in the order in which they are taken: the one for filling outboxes, this object's, a search list's, those of
// observers and of the store of keys that roam. No code of the app is called while one is held: observers are called on
// a queue, and what the app's closures hold is released outside.

internal import Files
internal import Foundation
internal import Glibc
internal import ManagedDefaults
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import Synchronization
internal import UbiquitousStore

/// The domains of one user on one bus, in this process.
final class DefaultsProcess: Sendable {
    /// The queue on which observers are called.
    static let queue = DispatchQueue(label: "org.example.UbiquitousStore.defaults")
    /// The queue on which outboxes are changed, which may take long.
    static let outboxQueue = DispatchQueue(label: "org.example.UbiquitousStore.outboxes")

    /// How long a read may wait for a service that exists but doesn't answer, in seconds. After that, no read waits
    /// until the service answers.
    static let readPatience: TimeInterval = 5

    let link: DefaultsLink
    /// `system`, `session` or an address.
    let bus: String
    /// The user whose domains these are.
    let uid: UInt32
    /// The path of this program; `nil` for another user's domains, and if the program's name can't be a domain's.
    let program: String?
    /// The outboxes, in which this process leaves writes for the next one.
    let outboxes: Outboxes
    /// The domains whose outboxes could not be changed.
    private let overdueOutboxes = Mutex<Set<Text>>([])
    /// The wanted domains, and the threads that wait for them.
    let gates = DomainGates()
    let state: Mutex<DefaultsState>
    /// What properties observe, by domain.
    let storage = Mutex<[Text: StorageBoxes]>([:])

    /// - Parameter outboxes: the directory of the outboxes; `nil` if there are none.
    init(bus: String, uid: UInt32, outboxes: String?) {
        (self.bus, self.uid) = (bus, uid)
        let path = ProcessDefaults.program
        program =
            uid == geteuid() && ProcessDefaults.isDomain(path.split(separator: "/").last.map(String.init) ?? "")
            ? ProcessDefaults.place.program : nil
        link = DefaultsLink(BusAddress(bus), uid)
        self.outboxes = Outboxes(directory: outboxes, program: program)
        state = Mutex(
            DefaultsState(argument: ProcessDefaults.arguments(), registration: ProcessDefaults.registered()))
    }

    /// The time, in microseconds since 1970.
    static var now: Int64 { Int64(Date().timeIntervalSince1970 * 1_000_000) }

    // MARK: Search lists

    func add(_ box: SearchBox) {
        let domains = state.withLock { state in
            state.boxes.insert(box)
            box.list.withLock { list in
                for domain in list.domains { state.fill(&list, domain) }
                _ = list.replace(.ubiquitous, by: state.roaming[box.own]?.values ?? [:])
                _ = list.replace(.argument, by: state.argument)
                _ = list.replace(.registration, by: state.registration)
            }
            return box.list.withLock { $0.domains }
        }
        need(domains)
    }

    func remove(_ box: ObjectIdentifier) {
        state.withLock { $0.boxes.remove(box) }
    }

    /// Makes a list search a suite, after those that it searches, or no longer.
    func search(_ suite: Text, _ isSearched: Bool, _ box: SearchBox) {
        if isSearched { need([suite]) }
        state.withLock { state in
            let changes = box.list.withLock { list in
                if list.suites.contains(suite) == isSearched { return [SearchList.Change]() }
                if isSearched { state.fill(&list, suite) }
                return list.search(isSearched ? list.suites + [suite] : list.suites.filter { $0 != suite })
            }
            if !changes.isEmpty { box.tell(DefaultsChange(reason: ChangeReason.own, changes: changes)) }
        }
        box.searchesMore()
    }

    // MARK: Domains

    /// Opens those of the domains that aren't open yet.
    func need(_ domains: [Text]) {
        let (missing, isAbsent) = gates.want(domains)
        if missing.isEmpty { return }
        if isAbsent { preload(missing) }
        EventLoop.task { [link] in link.domainsWanted() }
    }

    /// Waits a while until domains have arrived.
    func awaitDomains(_ domains: [Text]) {
        need(domains)
        // The bus's own thread would wait for itself.
        if EventLoop.shared.isIsolatingCurrentContext() == true { return }
        // A service that hangs has not read what an earlier process left for it either.
        let (isSilent, answers) = gates.silence
        if gates.wait(for: domains, atMost: isSilent ? 0 : Self.readPatience) { return }
        gates.becomeSilent(since: answers)
        preload(domains)
    }

    /// Takes over a domain's layers and managed settings, which have arrived.
    func opened(_ domain: OpenedDomain) {
        // What moves from the store into the domain's layer is late there, too.
        if let store = domain.store, !store.isEmpty || mirror(domain.name) != nil {
            roam(domain.name, store: store.isEmpty ? nil : store, keys: domain.managed?.ubiquitous ?? .none)
        }
        change(reason: ChangeReason.local) { state, update in
            for isHost in [false, true] {
                guard let snapshot = isHost ? domain.host : domain.values else { continue }
                let layer = SearchList.Layer(of: domain.name, isHost: isHost)
                let keys = state.layers[layer, default: LayerCopy()].loaded(
                    snapshot.generation, isComplete: true, snapshot.values)
                update.layer(layer, keys, state)
            }
            if let managed = domain.managed { update.managed(domain.name, managed, &state) }
        }
        openIfComplete(domain.name)
    }

    /// Lets those go on who wait for a domain, once all of it has arrived.
    private func openIfComplete(_ domain: Text) {
        let isComplete = state.withLock { state in
            state.managed[domain] != nil && state.layers[.domain(domain)]?.generation != nil
                && state.layers[.host(domain)]?.generation != nil
        }
        if isComplete { gates.open([domain]) }
    }

    /// Handles the loss of the service: whatever waits for it continues with what is known.
    func lost() {
        state.withLock { state in
            for layer in state.layers.keys { state.layers[layer]?.lost() }
        }
        logRefusals()
        preload(gates.lost())
        gates.openAll()
    }

    /// Shows what outboxes hold for domains of which nothing else is known.
    private func preload(_ domains: [Text]) {
        for domain in domains {
            let isUnknown = state.withLock { state in state.layers[.domain(domain)]?.generation == nil }
            guard isUnknown, let file = outboxes.file(domain), file.exists, let outbox = file.read() else {
                continue
            }
            change(reason: ChangeReason.local) { state, update in
                state.roaming[domain]?.preload(outbox.writes)
                update.roaming(domain, &state)
                for isHost in [false, true] {
                    let layer = SearchList.Layer(of: domain, isHost: isHost)
                    let writes = outbox.writes.filter { $0.isHost == isHost && $0.store == nil }
                    state.layers[layer, default: LayerCopy()].preload(writes)
                    update.layer(layer, writes.map(\.key), state)
                }
            }
        }
    }

    func contents(of layer: SearchList.Layer) -> [Text: Value] {
        state.withLock { $0.layers[layer]?.visible ?? [:] }
    }

    // MARK: Writing

    /// Changes a layer: here at once, and in the service soon.
    /// - Returns: whether a stored value has changed.
    @discardableResult
    func write(
        _ layer: SearchList.Layer, _ changes: Changes, isWhole: Bool = false, replacingAll replacesAll: Bool = false,
        done: (@Sendable ((any Error)?) -> Void)? = nil
    ) -> Bool {
        ExitWork.settlement.becomeDue()
        let (isNews, isFirst) = change(reason: ChangeReason.own) { state, update in
            let news = changes.filter { state.layers[layer]?.visible[$0.key] != $0.value }
            let ticket = done.map { state.waiters.add($0) }
            // What is set in the domain itself is no value that the store is to replace.
            if let place = layer.place, !place.isHost {
                state.roaming[place.domain]?.superseded.subtract(changes.keys)
            }
            state.layers[layer, default: LayerCopy()].write(
                changes, at: Self.now, isWhole: isWhole, replacingAll: replacesAll, ticket: ticket)
            update.layer(layer, news.keys, state)
            return (!news.isEmpty, state.toBeSent.insert(layer).inserted)
        }
        // Many writes in a row wake the loop's thread once.
        if isFirst {
            EventLoop.task { [self] in
                state.withLock { _ = $0.toBeSent.remove(layer) }
                await link.send(layer)
            }
        }
        return isNews
    }

    /// Replaces all values of a layer, all or nothing.
    @discardableResult
    func replace(_ layer: SearchList.Layer, by values: [Text: Value]) -> Bool {
        let isKnown = state.withLock { $0.layers[layer]?.generation != nil }
        if !isKnown, let domain = layer.place?.domain {
            logDefaults(
                "The service isn't running, so other values of the domain \"\(domain)\" are unknown. They will be removed "
                    + "when the service starts, if this program is still running.")
        }
        var changes = Changes(values.map { ($0, .some($1)) }) { $1 }
        for key in contents(of: layer).keys where values[key] == nil { changes[key] = .some(nil) }
        return changes.isEmpty && isKnown ? false : write(layer, changes, isWhole: true, replacingAll: true)
    }

    /// Replaces or extends what the app registered, or its arguments.
    @discardableResult
    func setVolatile(_ layer: SearchList.Layer, merging: Bool = false, _ values: [Text: Value]) -> Bool {
        change(reason: ChangeReason.own) { state, update in
            let path: WritableKeyPath<DefaultsState, [Text: Value]> = layer == .argument ? \.argument : \.registration
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
        change(reason: ChangeReason.local) { state, update in
            let keys = state.layers[layer]?.keysSent ?? []
            let tickets = state.layers[layer]?.acknowledged(generation) ?? []
            update.layer(layer, keys, state)
            update.finish(tickets, nil, &state)
        }
        if let domain = layer.place?.domain { updateOutbox(domain) }
    }

    /// Makes an outbox follow what the service has acknowledged, so that no process delivers it over newer values.
    func updateOutbox(_ domain: Text) {
        guard outboxes.isFilled(domain) else { return }
        Self.outboxQueue.async { [self] in
            do { try outboxes.update(domain, pending: pendingWrites) } catch { updateOutboxLater(domain) }
        }
    }

    /// Tries again every ten seconds. A process may be stopped that has the outbox's lock, or the disk may be full.
    private func updateOutboxLater(_ domain: Text) {
        guard overdueOutboxes.withLock({ $0.insert(domain).inserted }) else { return }
        Self.outboxQueue.asyncAfter(deadline: .now() + 10) { [self] in
            _ = overdueOutboxes.withLock { $0.remove(domain) }
            updateOutbox(domain)
        }
    }

    /// Makes an outbox follow what is about to be sent. If the process ended after an acknowledgement, and before it
    /// could take an older value out, that would be delivered. It is no older one for the service if the newer write was
    /// the removal of a key that was not there, which changes nothing.
    ///
    /// If another process keeps the outbox locked, this waits for it for a while.
    func updateOutboxBeforeSending(_ domain: Text) async {
        var tries = 0
        while tries < Self.lockedOutboxTries, outboxes.isFilled(domain) {
            do throws(SystemError) { return try await updateOutboxNow(domain) } catch {
                guard error.number == EWOULDBLOCK else { return updateOutboxLater(domain) }
            }
            tries += 1
        }
    }

    private func updateOutboxNow(_ domain: Text) async throws(SystemError) {
        let result: Result<Void, SystemError> = await withCheckedContinuation { continuation in
            Self.outboxQueue.async { [self] in
                let result = Result { () throws(SystemError) in
                    try outboxes.update(domain, pending: pendingWrites)
                }
                continuation.resume(returning: result)
            }
        }
        try result.get()
    }

    /// How often to try to change an outbox that another process keeps locked, for a second each time.
    private static let lockedOutboxTries = 20

    /// Notes what this process has delivered for ended ones.
    func noteDelivered(_ writes: [Outbox.Write], _ domain: Text) {
        state.withLock { state in
            for write in writes {
                if write.store == nil {
                    state.layers[.init(of: domain, isHost: write.isHost), default: LayerCopy()].noteDelivered(write)
                } else {
                    state.delivered[domain, default: [:]][write.key] = write.time
                }
            }
        }
    }

    /// Returns a domain's writes that the service has not acknowledged.
    func pendingWrites(of domain: Text) -> [Outbox.Write] {
        state.withLock { $0.pendingWrites(of: domain, now: Self.now) }
    }

    func refused(_ layer: SearchList.Layer, _ error: any Error) {
        let isForAll = (error as? UbiquitousStoreError)?.isRefusalOfAll == true
        let reason = "\(error)"
        var isTakenBack = false
        logRefusals { of, refusals in of == layer && refusals.reason != reason }
        change(reason: ChangeReason.quotaViolation, error: error) { state, update in
            guard let write = state.layers[layer]?.refused(isForAll: isForAll) else { return }
            isTakenBack = true
            state.refusals[layer, default: Refusals(reason)].add(write.changes.keys)
            update.layer(layer, write.changes.keys, state)
            update.finish(write.tickets, error, &state)
        }
        logRefusalsSoon(of: layer)
        if let domain = layer.place?.domain { updateOutbox(domain) }
        guard isTakenBack, (error as? UbiquitousStoreError)?.code == .quotaExceeded else { return }
        Self.queue.async { UserDefaults.postSizeLimitExceeded() }
    }

    /// Logs the refusals so far.
    func logRefusals(_ isWanted: (SearchList.Layer, Refusals) -> Bool = { _, _ in true }) {
        let wanted = state.withLock { state in
            let wanted = state.refusals.filter { isWanted($0.key, $0.value) }
            for layer in wanted.keys { state.refusals[layer] = nil }
            return wanted.values
        }
        for refusals in wanted { refusals.log() }
    }

    /// Logs the refusals of a layer, together, when a moment has passed and its writes are answered.
    private func logRefusalsSoon(of layer: SearchList.Layer) {
        let isFirst = state.withLock { state in
            guard let isAwaited = state.refusals[layer]?.isAwaited else { return false }
            state.refusals[layer]?.isAwaited = true
            return !isAwaited
        }
        if isFirst { logRefusalsLater(of: layer) }
    }

    private func logRefusalsLater(of layer: SearchList.Layer) {
        Self.queue.asyncAfter(deadline: .now() + 0.5) { [self] in
            let isUnderWay = state.withLock { $0.refusals[layer] != nil && $0.layers[layer]?.isSettled == false }
            if isUnderWay { logRefusalsLater(of: layer) } else { logRefusals { of, _ in of == layer } }
        }
    }

    func loaded(_ layer: SearchList.Layer, _ snapshot: Snapshot) {
        change(reason: ChangeReason.local) { state, update in
            let keys = state.layers[layer, default: LayerCopy()].loaded(
                snapshot.generation, isComplete: snapshot.isComplete, snapshot.values, removed: snapshot.removed)
            update.layer(layer, keys, state)
        }
        if let domain = layer.place?.domain { openIfComplete(domain) }
    }

    /// Takes over the managed settings of the app's domain, and which of its keys roam.
    func managed(_ domain: OpenedDomain) {
        guard let managed = domain.managed else { return }
        self.managed(domain.name, managed)
        roam(domain.name, store: domain.store.flatMap { $0.isEmpty ? nil : $0 }, keys: managed.ubiquitous ?? .none)
    }

    func managed(_ domain: Text, _ managed: ManagedDomain) {
        change(reason: ChangeReason.managed) { state, update in update.managed(domain, managed, &state) }
        openIfComplete(domain)
    }

    func managed(_ domain: Text) -> ManagedDomain { state.withLock { $0.managed[domain] ?? ManagedDomain() } }

    func generation(_ layer: SearchList.Layer) -> UInt64 { state.withLock { $0.layers[layer]?.generation ?? 0 } }

    /// Whether the values of a domain have arrived, and those of its keys that roam.
    func isKnown(_ domain: Text) -> Bool {
        state.withLock { state in
            state.layers[.domain(domain)]?.generation != nil && state.roaming[domain]?.mirror?.isLoaded != false
        }
    }

    // MARK: Pending writes

    /// The layers with writes that the service has not acknowledged.
    var unsettled: [SearchList.Layer] { state.withLock { $0.layers.filter { !$0.value.isSettled }.map(\.key) } }

    /// Whether there are writes that the service has not acknowledged.
    var isUnsettled: Bool { !unsettled.isEmpty || !unsettledMirrors.isEmpty }

    var unsettledMirrors: [StoreMirror] {
        state.withLock { $0.roaming.values.compactMap(\.mirror) }.filter { !$0.pending.changes.isEmpty }
    }

    /// Returns the domains that have values here or in the service, sorted.
    func domainNames() -> [String] {
        var names = state.withLock { state in
            Set(state.layers.filter { !$0.value.visible.isEmpty }.compactMap(\.key.place?.domain))
        }
        let emptied = state.withLock { state in
            Set(state.layers.filter { $0.value.visible.isEmpty }.compactMap(\.key.place?.domain)).subtracting(names)
        }
        if EventLoop.shared.isIsolatingCurrentContext() != true, !gates.isAbsent {
            let (gate, listed) = (Gate(), ListedDomains())
            EventLoop.task { [link] in
                let names = (try? await link.listDomains()) ?? []
                listed.names.withLock { $0 = names.map { Text($0) } }
                gate.open()
            }
            _ = gate.wait(atMost: Settlement.patience)
            names.formUnion(listed.names.withLock { $0 }.filter { !emptied.contains($0) })
        }
        return names.sorted().map(\.string)
    }

    /// Changes the state, and notifies observers.
    @discardableResult
    func change<T>(
        reason: UInt32, error: (any Error)? = nil, _ body: (inout DefaultsState, inout DefaultsUpdate) -> T
    ) -> T {
        var update = DefaultsUpdate(reason: reason, error: error)
        let result = state.withLock { state in
            defer { update.tell() }
            return body(&state, &update)
        }
        update.callWaiters()
        return result
    }
}

/// The domains that the service lists, for the thread that waits for them.
private final class ListedDomains: Sendable {
    let names = Mutex<[Text]>([])
}
