// SPDX-License-Identifier: Apache-2.0

// When a subscriber is told. Signals come from the path that was subscribed through, since client libraries deliver
// them by path. The first change goes out at once; those that follow within 50 ms are merged (within 5 ms of a domain,
// which people change by hand and see at once), and one of another reason sends what is waiting and goes out itself.
//
// A subscriber that does not read must not fill the bus (see Delivery): its changes are merged here until it
// does, one for each reason (see StoreChange).

internal import PropertyList
internal import SDBus
internal import StoreBus
internal import SyncEngine

/// The signal that tells of changes.
struct ChangeSignal {
    let interface: String
    let member: String
    /// Changes within so many microseconds are merged.
    let interval: UInt64
    /// What the signal says besides.
    var info: [String: Value] = [:]

    static let store = ChangeSignal(
        interface: BusNames.storeInterface, member: "DidChangeExternally", interval: 50_000)

    static func domain(isHost: Bool) -> ChangeSignal {
        ChangeSignal(
            interface: BusNames.domainInterface, member: "DidChange", interval: 5_000,
            info: isHost ? ["host": .boolean(true)] : [:])
    }
}

/// One connection's subscription to one store, through one of its paths.
@BusActor
final class StoreSubscription {
    let client: Client
    let peer: Peer
    /// Changes by other processes of this device are told as well.
    var includesLocal: Bool

    let path: String
    private let signal: ChangeSignal
    private let connection: BusConnection
    private var waiting: [StoreChange] = []
    private var lastSent: UInt64?
    private var timer: EventSource?
    private var isHeldUp = false

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

    /// Tells of a change, now or with those that follow.
    func add(_ change: StoreChange) {
        if isHeldUp { return waiting.merge(change) }
        if let last = waiting.last, last.reason == change.reason {
            waiting[waiting.count - 1].merge(change)
        } else {
            let flushes = !waiting.isEmpty || lastReason != change.reason
            waiting.append(change)
            if flushes { return send() }
        }
        let due = lastSent.map { $0 + signal.interval } ?? 0
        let now = EventLoop.now
        if due <= now { return send() }
        if timer == nil {
            timer = EventLoop.shared.after(.microseconds(Int64(due - now))) { [weak self] in
                self?.timer = nil
                self?.send()
            }
        }
    }

    func cancel() {
        timer = nil
        waiting = []
    }

    private var lastReason: StoreNotice.Reason?

    private func send() {
        timer = nil
        guard client.delivery.hasRoom(for: size) else { return holdUp() }
        for change in waiting { send(change) }
        waiting = []
        lastSent = EventLoop.now
    }

    /// About how many bytes are going to be sent.
    private var size: Int {
        waiting.reduce(0) { $0 + 200 + $1.keys.reduce(0) { $0 + $1.text.utf8Count + 8 } }
    }

    /// Waits until the client has read what was sent to it; until then its changes are merged here.
    private func holdUp() {
        let changes = waiting
        waiting = []
        for change in changes { waiting.merge(change) }
        isHeldUp = true
        client.delivery.wait(toTell: size) { [weak self] in
            self?.isHeldUp = false
            self?.send()
        }
    }

    private func send(_ change: StoreChange) {
        lastReason = change.reason
        let keys = change.keys.sorted().map(\.string)
        // Without a key it is told as well.
        for start in stride(from: 0, to: max(1, keys.count), by: StoreChange.mostKeys) {
            send(change, keys[start..<min(keys.count, start + StoreChange.mostKeys)])
        }
    }

    private func send(_ change: StoreChange, _ keys: ArraySlice<String>) {
        // If it fails, the connection is gone, and with it everyone who could be told.
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
