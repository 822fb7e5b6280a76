// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList
internal import SDBus
internal import Synchronization

/// One store in this process: the copy for reads, behind a lock that is held only for a lookup, and the callers that
/// wait.
///
/// All objects for the same store share one, so what is written through one is read through the others. Slow work
/// happens elsewhere: on the bus's thread, which starts with the first store, and observers are called on a queue of
/// their own.
final class SharedStore: Sendable {
    /// How long the first read waits for a service that is running but doesn't answer, in seconds.
    static let readPatience: TimeInterval = 0.5
    /// How long ``synchronize()`` waits at most, in seconds.
    static let synchronizePatience: TimeInterval = 1
    /// How long a process waits at its end for the service to accept its writes, in seconds.
    static let exitPatience: TimeInterval = 0.1

    private let copy = Mutex(LocalCopy())
    private let visitors: Mutex<Visitors>
    /// Opened when the first snapshot arrives, or when waiting for it is pointless.
    private let firstSnapshot = Gate()
    let link: StoreLink
    private let queue = DispatchQueue(label: "org.example.UbiquitousStore.observers")
    private let observers = Observers<Announcement>()
    private let watchers = Mutex<[@Sendable ([Text]?) -> Void]>([])
    private let isWatched = Atomic<Bool>(false)

    init(_ place: StorePlace) {
        link = StoreLink(place.bus, place.identifier)
        visitors = Mutex(Visitors(identifier: place.identifier))
        if !OwnProcess.isThis { return }
        EventLoop.task { [link, weak self] in
            link.store = self
            _ = try? await link.object()
        }
    }

    deinit {
        EventLoop.task { [link] in link.close() }
    }

    /// The store's identifier; empty while only the service knows it.
    var identifier: String { visitors.withLock { $0.identifier } }

    // MARK: Reading

    /// Returns the value of a key in the copy.
    func value(_ name: String) -> Value? {
        let key = Text(name)
        if let value = copy.withLock({ $0.isReadable ? .some($0.visible[key]) : nil }) { return value }
        awaitFirstSnapshot()
        return copy.withLock { $0.visible[key] }
    }

    /// All values in the copy.
    var values: [Text: Value] {
        if let values = copy.withLock({ $0.isReadable ? $0.visible : nil }) { return values }
        awaitFirstSnapshot()
        return copy.withLock { $0.visible }
    }

    /// The values in the copy, without waiting for the first snapshot.
    var presentValues: [Text: Value] { copy.withLock { $0.visible } }

    /// Whether the first snapshot has arrived.
    var hasSnapshot: Bool { copy.withLock { $0.generation != nil } }

    /// The changes that the service has not acknowledged, those of them that were sent, and the generation that each key's knows.
    var pending: (Changes, unanswered: Changes, known: [Text: UInt64]) {
        copy.withLock { ($0.pending, $0.unanswered, $0.knownToPending) }
    }

    /// Whether this thread may wait for the bus's thread: the process has one, and it is another thread.
    private static var canWait: Bool {
        OwnProcess.isThis && EventLoop.shared.isIsolatingCurrentContext() != true
    }

    /// Waits until the first snapshot has arrived, or waiting for it is pointless, for a number of seconds at most.
    func awaitFirstSnapshot(atMost seconds: Double = SharedStore.readPatience) {
        // Nothing waits twice.
        if copy.withLock({ $0.isReadable }) { return }
        if Self.canWait { _ = firstSnapshot.wait(atMost: seconds) }
        copy.withLock { $0.readEarly() }
    }

    // MARK: Writing

    /// Changes the copy at once, and the service soon.
    ///
    /// - Throws: ``UbiquitousStoreError`` for what no store can hold; nothing changes then.
    func write(_ changes: Changes) throws {
        let write = try Write(checking: changes)
        let actions = copy.withLock { $0.write(write) }
        tellWatchers(changes)
        perform(actions)
        stayWhileUnsettled()
        Self.exitWork.becomeDue()
    }

    /// Changes the copy at once, and returns when the service has applied the changes.
    ///
    /// - Throws: ``UbiquitousStoreError`` if they are refused, and then nothing has changed; `CancellationError` if the
    ///   task is cancelled, and then they are still sent.
    func writeAndWait(_ changes: Changes) async throws {
        let write = try Write(checking: changes)
        try await withTicket { ticket in
            var write = write
            write.tickets = [ticket]
            let actions = copy.withLock { $0.write(write) }
            tellWatchers(changes)
            Self.exitWork.becomeDue()
            return actions
        }
    }

    /// Returns when the service has replied to every write.
    func settle() async throws {
        try await withTicket { ticket in copy.withLock { $0.settle(ticket) } }
    }

    private func withTicket(_ begin: (Ticket) -> [LocalCopy.Action]) async throws {
        try OwnProcess.check()
        let ticket = visitors.withLock { $0.newTicket() }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                visitors.withLock { $0.waiting[ticket] = continuation }
                perform(begin(ticket))
                stayWhileUnsettled()
                // The cancellation handler may have run before the ticket was registered.
                if Task.isCancelled { finish([ticket], CancellationError()) }
            }
        } onCancel: {
            finish([ticket], CancellationError())
        }
    }

    private func finish(_ tickets: [Ticket], _ error: (any Error)?) {
        let finished = visitors.withLock { visitors in tickets.compactMap { visitors.waiting.removeValue(forKey: $0) } }
        for continuation in finished { continuation.resume(with: error.map { .failure($0) } ?? .success(())) }
    }

    /// Stores with unanswered writes. They outlive the objects that made the writes.
    private static let unsettled = Mutex<[ObjectIdentifier: SharedStore]>([:])

    private func stayWhileUnsettled() {
        Self.unsettled.withLock { $0[ObjectIdentifier(self)] = copy.withLock { $0.isSettled } ? nil : self }
    }

    /// Makes the process wait for the service at exit, for at most ``exitPatience``, if writes are in flight.
    private static let exitWork = ExitWork { SharedStore.flush() }

    private static func flush() {
        let stores = unsettled.withLock { Array($0.values) }
        if stores.isEmpty || !canWait { return }
        let settled = Gate()
        EventLoop.task {
            for store in stores { try? await store.settleQuietly() }
            settled.open()
        }
        _ = settled.wait(atMost: exitPatience)
    }

    // MARK: The service itself

    /// Returns the store's object, once the service is reached.
    ///
    /// - Throws: ``UbiquitousStoreError`` if it can't be reached.
    func object() async throws -> StoreObject {
        try OwnProcess.check()
        return try await link.object()
    }

    /// Returns when the service has taken or refused every write; refusals have been announced.
    ///
    /// - Throws: ``UbiquitousStoreError`` if the service can't be reached, or can't take a write now, for example on a
    ///   full disk; `CancellationError`.
    func settleQuietly() async throws {
        _ = try await object()
        do { try await settle() } catch let error as UbiquitousStoreError where error.isFinalRefusal {}
    }

    /// Brings the copy up to date.
    ///
    /// - Throws: ``UbiquitousStoreError``.
    func refresh() async throws {
        try OwnProcess.check()
        try await link.refresh()
    }

    /// Makes the service write everything to disk, and takes in what has arrived.
    ///
    /// - Throws: ``UbiquitousStoreError``.
    @discardableResult
    func synchronize(waitingForRemote: Bool, timeout: Duration?) async throws -> Bool {
        try await settleQuietly()
        return try await link.synchronize(waitingForRemote: waitingForRemote, timeout: timeout)
    }

    /// Does the same, but waits at most a second. After a timeout it doesn't wait again until the service responds.
    func synchronizeSoon() -> Bool {
        let isHopeless = !Self.canWait || visitors.withLock { $0.isServiceSilent }
        if isHopeless { return false }
        let gate = Gate()
        EventLoop.task { [self] in
            let isDone = (try? await synchronize(waitingForRemote: false, timeout: .seconds(60))) != nil
            gate.open(isDone)
            if isDone { visitors.withLock { $0.isServiceSilent = false } }
        }
        if let outcome = gate.wait(atMost: Self.synchronizePatience) { return outcome }
        visitors.withLock { $0.isServiceSilent = true }
        // It may have answered just now, and has nothing more to say.
        guard let outcome = gate.wait(atMost: .zero) else { return false }
        visitors.withLock { $0.isServiceSilent = false }
        return outcome
    }

    // MARK: Observing

    /// Calls `action` with changes that this process didn't make, and with refused writes, on a serial queue of this
    /// store, until ``stopObserving(_:)``.
    func observe(_ action: @escaping @Sendable (Announcement) -> Void) -> UUID { observers.add(action) }

    /// Removes an observer that ``observe(_:)`` added.
    func stopObserving(_ observer: UUID) { observers.remove(observer) }

    /// Calls `watcher` with each change of the copy, on the thread that makes it, as long as the store is in use: with
    /// the keys that this process wrote, or with `nil` after an event from the service.
    func watch(_ watcher: @escaping @Sendable ([Text]?) -> Void) {
        watchers.withLock { $0.append(watcher) }
        isWatched.store(true, ordering: .releasing)
    }

    private func tellWatchers(_ written: Changes?) {
        guard isWatched.load(ordering: .acquiring) else { return }
        let keys = written.map { Array($0.keys) }
        for watcher in watchers.withLock({ $0 }) { watcher(keys) }
    }

    /// Calls the observers on the store's queue.
    func announce(_ announcement: Announcement) {
        queue.async { [self] in observers.tell(announcement) }
    }
}

// MARK: - The link

extension SharedStore {
    /// Passes an event from the service to the copy, and carries out its actions.
    func tell(_ event: (inout LocalCopy) -> [LocalCopy.Action]) {
        visitors.withLock { $0.isServiceSilent = false }
        let (actions, isReadable) = copy.withLock { (event(&$0), $0.isReadable) }
        tellWatchers(nil)
        perform(actions)
        stayWhileUnsettled()
        if isReadable { firstSnapshot.open() }
    }

    /// Tells the copy that the service is gone.
    func lose() {
        copy.withLock { $0.lost() }
        firstSnapshot.open()
    }

    /// Returns the call to send now.
    func nextCall() -> LocalCopy.Call? { copy.withLock { $0.nextCall() } }

    /// The copy's generation; 0 before the first snapshot.
    var generation: UInt64 { copy.withLock { $0.generation ?? 0 } }

    /// Records the identifier that the service reported.
    func noteIdentifier(_ identifier: String) {
        visitors.withLock { $0.identifier = identifier }
    }

    private func fetch(
        since generation: UInt64, _ event: @escaping @Sendable (inout LocalCopy, Snapshot) -> [LocalCopy.Action]
    ) {
        EventLoop.task { [link] in await link.fetch(since: generation, event) }
    }

    private func perform(_ actions: [LocalCopy.Action]) {
        for action in actions {
            switch action {
            case .fetch(let generation): fetch(since: generation) { $0.loaded($1) }
            case .send: EventLoop.task { [link] in await link.send() }
            case .announce(let announcement): announce(announcement)
            case .finish(let tickets, let error): finish(tickets, error)
            }
        }
    }
}

/// The callers that wait for a store's service, and its observers.
private struct Visitors {
    var identifier: String
    var waiting: [Ticket: CheckedContinuation<Void, any Error>] = [:]
    /// Whether nothing has arrived from the service since a caller's wait timed out.
    var isServiceSilent = false
    private var lastTicket: Ticket = 0

    init(identifier: String) {
        self.identifier = identifier
    }

    mutating func newTicket() -> Ticket {
        lastTicket += 1
        return lastTicket
    }
}
