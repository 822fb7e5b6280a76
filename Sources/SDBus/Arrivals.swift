// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Holds calls of senders that aren't known yet, until the bus has said who they are, and the service has examined them
/// if it does that (``Peers/examine``).
///
/// The bus is asked without blocking, because its answer comes after all that others have sent before. Blocking would
/// mean reading and holding all of it first, so a caller that pipelines would keep everyone waiting. After that,
/// the calls are given back to libsystemd, in order and before later arrivals. Polkit's users do the same.
@BusActor
final class Arrivals {
    private unowned let connection: BusConnection
    private var senders: [String: Sender] = [:]
    /// The peers whose calls were given back, with the calls not dispatched yet. Such a peer must not be forgotten.
    private var returning: [String: (peer: Peer, calls: Int)] = [:]
    private var held = Held()
    /// What is held of the senders whose users the bus has named.
    private var heldOfUsers: [UInt32: Held] = [:]
    /// The senders whose calls are refused, by their users.
    private var refusedOfUsers: [UInt32: [String]] = [:]
    /// How often the bus was asked, for tests.
    private(set) var requests = 0

    /// The bytes that one sender's calls may take: some ten thousand small calls.
    static let senderLimit = 4 << 20
    /// The bytes that one sender's calls may take where all senders' take more than ``roomyLimit``. So the connections
    /// that a bus allows a user, 256, can't take all of ``limit``.
    static let crowdedSenderLimit = 192 << 10
    /// The bytes that the calls of a user's senders may take while these are examined, which may take long.
    nonisolated static let userLimit = 4 << 20
    /// The bytes that all senders' calls may take before each sender may have less.
    nonisolated static let roomyLimit = 16 << 20
    /// The bytes that all senders' calls may take.
    nonisolated static let limit = 64 << 20
    /// The size in bytes above which a call is large. Counting the rest would take as long as reading it.
    static let largeCall = 64 << 10
    /// The number of large calls that may be held, of all senders and of a user's. Each may have what the bus lets
    /// through, 32 MiB.
    nonisolated static let (largeLimit, userLargeLimit) = (3, 2)
    /// The bytes that a call takes besides its arguments.
    static let overhead = 256
    /// The number of refusals sent to one sender. They aren't weighed, so later calls get no answer at all.
    static let refusalLimit = 256

    /// Called for a peer of whose calls some got no answer.
    var onUnanswered: (@BusActor (Peer) -> Void)?

    private struct Sender {
        var calls: [Message] = []
        var held = Held()
        var refusals = 0
        /// The user, once the bus has named it.
        var user: UInt32?
        /// Whether its calls are refused until those of the user's other senders are given back.
        var isRefused = false
    }

    /// What calls take that are held.
    private struct Held {
        var bytes = 0
        var largeCalls = 0

        static func + (one: Held, other: Held) -> Held {
            Held(bytes: one.bytes + other.bytes, largeCalls: one.largeCalls + other.largeCalls)
        }

        static func - (one: Held, other: Held) -> Held {
            Held(bytes: one.bytes - other.bytes, largeCalls: one.largeCalls - other.largeCalls)
        }

        /// Whether these calls are few enough for one user.
        var fitsUser: Bool { bytes <= Arrivals.userLimit && largeCalls <= Arrivals.userLargeLimit }
        /// Whether these calls are few enough for all senders.
        var fitsAll: Bool { bytes <= Arrivals.limit && largeCalls <= Arrivals.largeLimit }
    }

    init(at connection: BusConnection) {
        self.connection = connection
    }

    /// Keeps a call until its sender is known.
    func hold(_ call: Message) {
        guard let name = call.sender else { return }
        let isFirst = senders[name] == nil
        add(call, to: &senders[name, default: Sender()])
        if isFirst { ask(name) }
    }

    private func add(_ call: Message, to sender: inout Sender) {
        // The rest of a flood isn't even measured.
        if sender.refusals == Self.refusalLimit { return }
        let size = call.argumentSize(atMost: Self.largeCall).map { $0 + Self.overhead + (call.path?.utf8.count ?? 0) }
        let added = Held(bytes: size ?? 0, largeCalls: size == nil ? 1 : 0)
        let most = held.bytes + added.bytes <= Self.roomyLimit ? Self.senderLimit : Self.crowdedSenderLimit
        let fits =
            !sender.isRefused && sender.held.bytes + added.bytes <= most && (held + added).fitsAll
            && (sender.user.map { (heldOfUsers[$0, default: Held()] + added).fitsUser } ?? true)
        // A large call is kept as it arrived. Its size is limited by what the bus lets through.
        guard fits, let kept = size == nil ? call : call.copy(on: connection.bus) else {
            sender.refusals += 1
            return refuse(call, Self.tooMuch)
        }
        sender.calls.append(kept)
        sender.held = sender.held + added
        held = held + added
        if let user = sender.user { heldOfUsers[user] = heldOfUsers[user, default: Held()] + added }
    }

    private func ask(_ name: String) {
        requests += 1
        do {
            let call = try connection.newBusCall("GetConnectionCredentials")
            try call.append(name)
            try connection.start(call, timeout: nil) { [weak self] answer in
                self?.answered(name, Result { try Credentials(reading: answer.get()) })
            }
        } catch {
            answered(name, .failure(error))
        }
    }

    private func answered(_ name: String, _ credentials: Result<Credentials, any Error>) {
        guard let sender = senders[name] else { return }
        guard case .success(let credentials) = credentials else {
            refuseAll(of: name, .accessDenied)
            return
        }
        guard let examine = connection.peers.examine else { return giveBack(name, credentials, nil) }
        let heldOfUser = heldOfUsers[credentials.uid, default: Held()] + sender.held
        senders[name]?.user = credentials.uid
        heldOfUsers[credentials.uid] = heldOfUser
        guard heldOfUser.fitsUser else { return refuse(name, credentials.uid, Self.tooMuch) }
        examine(credentials) { [weak self] result in
            switch result {
            case .success(let context): self?.giveBack(name, credentials, context)
            case .failure(let error): self?.refuse(name, credentials.uid, error)
            }
        }
    }

    /// Returns a sender's calls, which are no longer held.
    private func release(_ name: String) -> [Message] {
        guard let sender = senders.removeValue(forKey: name) else { return [] }
        held = held - sender.held
        if let user = sender.user {
            let rest = heldOfUsers[user, default: Held()] - sender.held
            let isNothing = rest.bytes == 0 && rest.largeCalls == 0
            heldOfUsers[user] = isNothing ? nil : rest
            if isNothing { for name in refusedOfUsers.removeValue(forKey: user) ?? [] { senders[name] = nil } }
        }
        return sender.calls
    }

    /// - Returns: the number of refusals.
    @discardableResult
    private func refuseAll(of name: String, _ error: BusError) -> Int {
        let calls = release(name)
        for call in calls { refuse(call, error) }
        return calls.count
    }

    /// Refuses a sender's calls, also later ones as long as calls of its user are held: the bus need not be asked again,
    /// and the number of refusals stays bounded.
    private func refuse(_ name: String, _ user: UInt32, _ error: BusError) {
        let refusals = (senders[name]?.refusals ?? 0) + refuseAll(of: name, error)
        if heldOfUsers[user] == nil { return }
        senders[name] = Sender(refusals: min(refusals, Self.refusalLimit), user: user, isRefused: true)
        refusedOfUsers[user, default: []].append(name)
    }

    /// Makes a sender known, and gives its calls back to libsystemd.
    private func giveBack(_ name: String, _ credentials: Credentials, _ context: PeerContext?) {
        let hasUnanswered = senders[name]?.refusals == Self.refusalLimit
        let calls = release(name)
        let peer = Peer(name, credentials, on: connection.reference)
        peer.context = context
        connection.peers.insert(peer)
        var returned = 0
        for call in calls {
            if sd_bus_enqueue_for_read(connection.bus, call.message) >= 0 {
                returned += 1
            } else {
                refuse(call, Self.tooMuch)
            }
        }
        if returned > 0 { returning[name] = (peer, returned) }
        if hasUnanswered { onUnanswered?(peer) }
    }

    /// Whether calls are held, or were given back and are not dispatched yet.
    var holdsCalls: Bool { !returning.isEmpty || held.bytes > 0 || held.largeCalls > 0 }

    /// Notes that a known sender's call is dispatched.
    func noteDispatch(from peer: Peer) {
        if returning.isEmpty { return }
        guard let (_, calls) = returning[peer.uniqueName] else { return }
        returning[peer.uniqueName] = calls > 1 ? (peer, calls - 1) : nil
    }

    private func refuse(_ call: Message, _ error: BusError) {
        // Without a connection there is no one to tell.
        try? call.sendError(error, weighedFor: nil, on: connection)
    }

    private static let tooMuch = BusError.limitsExceeded(
        "Too much was sent before it was known who sends it. Call again.")
}
