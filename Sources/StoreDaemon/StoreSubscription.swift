// SPDX-License-Identifier: Apache-2.0

// When signals are sent. They come from the path that was subscribed to, because client libraries deliver them by path.
// The first change is sent at once. Those within the next 50 ms are merged (5 ms for a domain, which users edit by hand
// and watch). A change for another reason sends what is waiting, then itself.
//
// A subscriber that doesn't read must not fill the bus (see Delivery): its changes are merged here until it reads, into
// one for each reason (see StoreChange).

internal import PropertyList
internal import SDBus
internal import StoreBus
internal import SyncEngine

/// The signal that reports changes.
struct ChangeSignal {
    let interface: String
    let member: String
    /// The interval within which changes are merged, in microseconds.
    let interval: UInt64
    /// Entries that every such signal's info has.
    var info: [String: Value] = [:]

    static let store = ChangeSignal(
        interface: BusNames.storeInterface, member: "DidChangeExternally", interval: 50_000)

    static func domain(isHost: Bool) -> ChangeSignal {
        ChangeSignal(
            interface: BusNames.domainInterface, member: "DidChange", interval: 5_000,
            info: isHost ? ["host": .boolean(true)] : [:])
    }
}

/// A connection's subscription to a store through one of the store's paths.
@BusActor
final class StoreSubscription {
    let client: Client
    let peer: Peer
    /// Whether changes by other processes on this device are reported too.
    var includesLocal: Bool

    let path: String
    private let signal: ChangeSignal
    private let connection: BusConnection
    private var waiting: [StoreChange] = []
    private var lastSent: UInt64?
    private var timer: EventSource?
    private var isHeldUp = false
    /// Whether it is in its user's queue.
    private var isDue = false
    /// Whether changes are held back, because the client may not open the store now.
    var isSuspended = false {
        didSet { if !isSuspended, oldValue, !isHeldUp, !isDue, !waiting.isEmpty { becomeDue() } }
    }

    init(
        _ client: Client, _ peer: Peer, path: String, includesLocal: Bool, signal: ChangeSignal = .store,
        connection: BusConnection
    ) {
        self.client = client
        self.peer = peer
        self.path = path
        self.includesLocal = includesLocal
        self.signal = signal
        self.connection = connection
    }

    /// Reports a change, now or merged with later ones.
    func add(_ change: StoreChange) {
        if isHeldUp || isDue || isSuspended {
            waiting.merge(change)
            return keep()
        }
        if let last = waiting.last, last.reason == change.reason {
            waiting[waiting.count - 1].merge(change)
        } else {
            let flushes = !waiting.isEmpty || lastReason != change.reason
            waiting.append(change)
            if flushes { return becomeDue() }
        }
        let due = lastSent.map { $0 + signal.interval } ?? 0
        let now = EventLoop.now
        if due <= now { return becomeDue() }
        if timer == nil {
            timer = EventLoop.shared.after(.microseconds(Int64(due - now))) { [weak self] in
                self?.timer = nil
                self?.becomeDue()
            }
        }
    }

    /// Sends what is waiting, once the signals to its user's other subscribers leave time for it.
    private func becomeDue() {
        isDue = true
        client.share.signals.add([self])
    }

    /// What sending costs, in about 5 microseconds.
    var cost: Int { size / 200 }

    /// Sends what is waiting.
    func sendDue() {
        isDue = false
        if !waiting.isEmpty, !isSuspended { send() }
    }

    func cancel() {
        timer = nil
        waiting = []
        if isHeldUp { client.delivery.forget(self) }
    }

    private var lastReason: StoreNotice.Reason?

    /// - Parameter isNext: whether this was held up, and is the next to be sent.
    private func send(isNext: Bool = false) {
        timer = nil
        let hasRoom = isNext ? client.delivery.fits(size) : client.delivery.hasRoom(for: size)
        guard hasRoom else { return holdUp(isNext: isNext) }
        for change in waiting { send(change) }
        waiting = []
        lastSent = EventLoop.now
    }

    /// About how many bytes the waiting changes take in signals.
    private var size: Int {
        waiting.reduce(0) { $0 + 200 + $1.keys.weight }
    }

    /// Merges changes until the client has read what was sent to it.
    private func holdUp(isNext: Bool) {
        let changes = waiting
        waiting = []
        for change in changes { waiting.merge(change) }
        isHeldUp = true
        keep()
        client.delivery.wait(toTell: self, bytes: size, isNext: isNext) { [weak self] in
            guard let self else { return }
            isHeldUp = false
            if !isSuspended { send(isNext: true) }
        }
    }

    /// Keeps of the waiting changes what there is room for. Of others, the signal tells only that there were some.
    private func keep() {
        for index in waiting.indices { waiting[index].keys = waiting[index].keys.kept(for: client.share) }
    }

    private func send(_ change: StoreChange) {
        lastReason = change.reason
        let keys = change.keys.keys.sorted().map(\.string)
        // A change without keys is sent as well.
        for start in stride(from: 0, to: max(1, keys.count), by: StoreChange.mostKeys) {
            send(change, keys[start..<min(keys.count, start + StoreChange.mostKeys)])
        }
    }

    private func send(_ change: StoreChange, _ keys: ArraySlice<String>) {
        // A failure means that the connection to the bus is lost, and with it every subscriber.
        try? connection.signal(path, signal.interface, signal.member, to: peer) { message in
            try message.append(change.reason.wireNumber)
            try message.append(strings: keys)
            try message.append(change.generation)
            try message.appendDictionary {
                for (key, value) in change.info { try message.append(info: key, value) }
                for (key, value) in signal.info { try message.append(entry: key, value) }
            }
        }
    }
}

extension StoreSubscription: Hashable {
    nonisolated static func == (left: StoreSubscription, right: StoreSubscription) -> Bool { left === right }

    nonisolated func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
}

extension Message {
    /// Writes an entry of a signal's info, in which every number is a count.
    fileprivate func append(info key: String, _ value: Value) throws {
        guard case .integer(let count) = value else { return try append(entry: key, value) }
        try container("e", "sv") {
            try append(key)
            try container("v", "t") { try append(UInt64(clamping: count)) }
        }
    }
}
