// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import PropertyList
internal import SDBus
internal import Synchronization

/// One store in this process: the copy that is read, behind a lock that is held for a lookup, and who waits for it.
///
/// All faces of the same store have the same one, so what is written through one of them is read through the other.
/// What takes time happens elsewhere: on the bus's thread, which starts with the first store, and observers are
/// called on a queue of their own.
final class SharedStore: Sendable {
    /// How long the first read may wait for a service that is there and doesn't answer, in seconds.
    static let readPatience: TimeInterval = 0.5
    /// How long ``synchronize()`` may wait, in seconds.
    static let synchronizePatience: TimeInterval = 1
    /// How long the end of the process may wait for the service to take what was written, in seconds.
    static let exitPatience: TimeInterval = 0.1

    private let copy = Mutex(LocalCopy())
    private let visitors: Mutex<Visitors>
    /// Opened when the first snapshot is here, or when waiting for it is of no use.
    private let firstSnapshot = Gate()
    let link: StoreLink
    private let queue = DispatchQueue(label: "org.example.UbiquitousStore.observers")

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

    /// The store's identifier; empty as long as only the service knows it.
    var identifier: String { visitors.withLock { $0.identifier } }

    // MARK: Reading

    /// What is here for a key.
    func value(_ name: String) -> Value? {
        let key = Text(name)
        if let value = copy.withLock({ $0.isReadable ? .some($0.visible[key]) : nil }) { return value }
        awaitFirstSnapshot()
        return copy.withLock { $0.visible[key] }
    }

    /// All that is here.
    var values: [Text: Value] {
        if let values = copy.withLock({ $0.isReadable ? $0.visible : nil }) { return values }
        awaitFirstSnapshot()
        return copy.withLock { $0.visible }
    }

    /// Whether the bus's thread is another one, which gets on while this one waits.
    private static var canWait: Bool {
        OwnProcess.isThis && EventLoop.shared.isIsolatingCurrentContext() != true
    }

    private func awaitFirstSnapshot() {
        if Self.canWait { _ = firstSnapshot.wait(atMost: Self.readPatience) }
        copy.withLock { $0.readEarly() }
    }

    // MARK: Writing

    /// Makes changes, here at once, and in the service soon.
    ///
    /// - Throws: ``UbiquitousStoreError`` for what no store can hold; nothing has changed then.
    func write(_ changes: Changes) throws {
        let write = try Write(checking: changes)
        perform(copy.withLock { $0.write(write) })
        stayWhileUnsettled()
    }

    /// Makes changes, here at once, and returns when the service has them.
    ///
    /// - Throws: ``UbiquitousStoreError`` if they are refused; nothing has changed then. `CancellationError` if the task
    ///   is cancelled, while they are on their way.
    func writeAndWait(_ changes: Changes) async throws {
        let write = try Write(checking: changes)
        try await withTicket { ticket in
            var write = write
            write.tickets = [ticket]
            return copy.withLock { $0.write(write) }
        }
    }

    /// Returns when the service has answered everything that was written.
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
                // The handler may have come before there was somebody to tell.
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

    /// Stores with writes that the service has not answered yet: these outlive whoever made them.
    private static let unsettled = Mutex<[ObjectIdentifier: SharedStore]>([:])

    private func stayWhileUnsettled() {
        _ = Self.flushesAtExit
        Self.unsettled.withLock { $0[ObjectIdentifier(self)] = copy.withLock { $0.isSettled } ? nil : self }
    }

    /// Has the process wait for the service at its end, ``exitPatience`` at most, if writes are on their way.
    private static let flushesAtExit: Void = { _ = atexit { SharedStore.flush() } }()

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

    /// The store's object, once there is a way to it.
    ///
    /// - Throws: ``UbiquitousStoreError``: why there is none.
    func object() async throws -> StoreObject {
        try OwnProcess.check()
        return try await link.object()
    }

    /// Returns when the service has answered everything that was written, whatever it said: what was refused has been
    /// announced.
    ///
    /// - Throws: ``UbiquitousStoreError`` if there is no way to the service; `CancellationError`.
    func settleQuietly() async throws {
        _ = try await object()
        do { try await settle() } catch is UbiquitousStoreError {}
    }

    /// Brings the copy up to date.
    ///
    /// - Throws: ``UbiquitousStoreError``.
    func refresh() async throws {
        try OwnProcess.check()
        try await link.refresh()
    }

    /// Has what was written put on disk, and takes in what has arrived.
    ///
    /// - Throws: ``UbiquitousStoreError``.
    @discardableResult
    func synchronize(waitingForRemote: Bool, timeout: Duration?) async throws -> Bool {
        try await settleQuietly()
        return try await link.synchronize(waitingForRemote: waitingForRemote, timeout: timeout)
    }

    /// The same, and waits for it a second at most. After having waited in vain it doesn't wait again before the
    /// service gives a sign of life.
    func synchronizeSoon() -> Bool {
        let isHopeless = !Self.canWait || visitors.withLock { $0.isServiceSilent }
        if isHopeless { return false }
        let gate = Gate()
        EventLoop.task { [self] in
            let isDone = try? await synchronize(waitingForRemote: false, timeout: .seconds(60))
            gate.open(isDone != nil)
        }
        if let outcome = gate.wait(atMost: Self.synchronizePatience) { return outcome }
        visitors.withLock { $0.isServiceSilent = true }
        return false
    }

    // MARK: Observing

    /// Calls `action` with what changes otherwise than by a write of this process, and with what is refused; on a
    /// serial queue of this store, until ``stopObserving(_:)``.
    func observe(_ action: @escaping @Sendable (Announcement) -> Void) -> UUID {
        let observer = UUID()
        visitors.withLock { $0.observers[observer] = action }
        return observer
    }

    /// Ends what ``observe(_:)`` began.
    func stopObserving(_ observer: UUID) {
        visitors.withLock { $0.observers[observer] = nil }
    }

    /// Tells the observers.
    func announce(_ announcement: Announcement) {
        queue.async { [self] in
            for action in visitors.withLock({ Array($0.observers.values) }) { action(announcement) }
        }
    }
}

// MARK: - The link

extension SharedStore {
    /// Tells the copy what came from the service, and does what it asks for.
    func tell(_ event: (inout LocalCopy) -> [LocalCopy.Action]) {
        visitors.withLock { $0.isServiceSilent = false }
        let (actions, isReadable) = copy.withLock { (event(&$0), $0.isReadable) }
        perform(actions)
        stayWhileUnsettled()
        if isReadable { firstSnapshot.open() }
    }

    /// Tells the copy that there is no way to the service.
    func lose() {
        copy.withLock { $0.lost() }
        firstSnapshot.open()
    }

    /// What is to be sent now.
    func nextCall() -> Changes? { copy.withLock { $0.nextCall() } }

    /// The generation that the copy is of; 0 before the first snapshot.
    var generation: UInt64 { copy.withLock { $0.generation ?? 0 } }

    /// The service says which store this is.
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
            case .examine(let generation): fetch(since: generation) { $0.examined($1) }
            case .send: EventLoop.task { [link] in await link.send() }
            case .announce(let announcement): announce(announcement)
            case .finish(let tickets, let error): finish(tickets, error)
            }
        }
    }
}

/// Who waits for a store's service, and who is told.
private struct Visitors {
    var identifier: String
    var waiting: [Ticket: CheckedContinuation<Void, any Error>] = [:]
    var observers: [UUID: @Sendable (Announcement) -> Void] = [:]
    /// It has answered nothing since somebody waited for it in vain.
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
