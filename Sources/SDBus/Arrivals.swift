// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Holds calls of senders that aren't known yet, until the bus has said who they are, and the service has examined them
/// if it does that (``Peers/examine``).
///
/// The bus is asked without blocking, because its answer comes after all that others have sent before. Blocking would
/// mean reading and holding all of it first, so a caller that pipelines would keep everyone waiting. After that,
/// the calls are given back to libsystemd, as polkit's users do: a few in each round, so that others' calls go on
/// meanwhile, and in their order. Until all are given back, the sender's later calls are held as well.
@BusActor
final class Arrivals {
    private unowned let connection: BusConnection
    private var senders: [String: Sender] = [:]
    /// The known senders some of whose calls are still held, in turn.
    private var line: [String] = []
    private var held = Held()
    /// What is held of the senders whose users the bus has named.
    private var heldOfUsers: [UInt32: Held] = [:]
    /// The senders whose calls are refused, by their users.
    private var refusedOfUsers: [UInt32: [String]] = [:]
    /// How often the bus was asked, for tests.
    private(set) var requests = 0

    /// The bytes that one sender's calls may take: some six thousand small calls.
    static let senderLimit = 2 << 20
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
    static let largeCall = 512 << 10
    /// The number of large calls that may be held, of all senders and of a user's.
    nonisolated static let (largeLimit, userLargeLimit) = (3, 2)
    /// What the bus lets through in a large call, in bytes.
    nonisolated static let largestCall = 32 << 20
    /// The bytes that a call takes besides its arguments.
    static let overhead = 256
    /// The number of refusals sent to one sender. They aren't weighed, so later calls get no answer at all.
    static let refusalLimit = 256

    /// Called for a peer of whose calls some got no answer.
    var onUnanswered: (@BusActor (Peer) -> Void)?
    /// Takes or gives back memory, as ``BusConnection/admitCalls(_:ifUnanswered:noteUnanswered:takeMemory:)`` describes.
    var takeMemory: @BusActor (_ bytes: Int, _ own: Int) -> Bool = { _, _ in true }

    /// How many of a sender's calls are given back at once. A round has room for more, and others' calls take it.
    private static let mostAtOnce = 16

    private struct Sender {
        private var calls = WaitingQueue<(message: Message, size: Held)>()
        /// What the calls take.
        private(set) var held = Held()
        var refusals = 0
        /// The user, once the bus has named it.
        var user: UInt32?
        /// Whether later calls are refused until those of the user's other senders are given back.
        var isRefused = false
        /// What the calls that are held are answered with; `nil` if they are given back, or wait.
        var verdict: BusError?
        /// The sender, once it is known. It must not be forgotten before its calls are dispatched.
        var peer: Peer?
        /// How many calls were given back, and are not dispatched yet.
        var returned = 0

        var holdsCalls: Bool { !calls.isEmpty }

        mutating func append(_ call: Message, _ size: Held) {
            calls.append((call, size))
            held = held + size
        }

        mutating func takeFirst() -> (message: Message, size: Held)? {
            guard let first = calls.removeFirst() else { return nil }
            held = held - first.size
            return first
        }
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

        /// The most bytes that these calls may have.
        var mostBytes: Int { bytes + largeCalls * Arrivals.largestCall }
        /// Whether these calls are few enough for one user.
        var fitsUser: Bool { bytes <= Arrivals.userLimit && largeCalls <= Arrivals.userLargeLimit }
        /// Whether these calls are few enough for all senders.
        var fitsAll: Bool { bytes <= Arrivals.limit && largeCalls <= Arrivals.largeLimit }
    }

    init(at connection: BusConnection) {
        self.connection = connection
    }

    /// Returns the sender of a call that is dispatched; `nil` if the call has to be held.
    /// - Parameter known: the sender, if it is known.
    func sender(of message: OpaquePointer, _ known: Peer?) -> Peer? {
        if senders.isEmpty { return known }
        guard let name = sd_bus_message_get_sender(message).map({ String(cString: $0) }), let sender = senders[name],
            let peer = sender.peer
        else { return known }
        // What was given back comes before what is read.
        if sender.returned == 0 { return nil }
        senders[name]?.returned -= 1
        endIfDone(name)
        return peer
    }

    /// Keeps a call until its sender is known, and its earlier calls are dispatched.
    func hold(_ call: Message) {
        guard let name = call.sender else { return }
        let isFirst = senders[name] == nil
        let isInLine = senders[name]?.holdsCalls == true
        guard senders[name]?.peer != nil else {
            add(call, to: &senders[name, default: Sender()])
            if isFirst { ask(name) }
            return
        }
        if keep(call, in: &senders[name, default: Sender()], evenIfLarge: false) {
            if !isInLine { line.append(name) }
        } else {
            // Nothing of a known sender is refused here. What is held of it is bounded.
            while let earlier = takeCall(of: name) { giveBack(earlier, of: name) }
            giveBack(call, of: name)
        }
    }

    private func add(_ call: Message, to sender: inout Sender) {
        // The rest of a flood isn't even measured.
        if sender.refusals >= Self.refusalLimit || keep(call, in: &sender, evenIfLarge: true) { return }
        sender.refusals += 1
        refuse(call, Self.tooMuch)
    }

    /// - Returns: whether there is room for the call.
    private func keep(_ call: Message, in sender: inout Sender, evenIfLarge: Bool) -> Bool {
        let size = call.argumentSize(atMost: Self.largeCall).map { $0 + Self.overhead + (call.path?.utf8.count ?? 0) }
        if size == nil, !evenIfLarge { return false }
        let added = Held(bytes: size ?? 0, largeCalls: size == nil ? 1 : 0)
        let most = held.bytes + added.bytes <= Self.roomyLimit ? Self.senderLimit : Self.crowdedSenderLimit
        let fits =
            !sender.isRefused && sender.held.bytes + added.bytes <= most && (held + added).fitsAll
            && (sender.user.map { (heldOfUsers[$0, default: Held()] + added).fitsUser } ?? true)
        guard fits, takeMemory(added.mostBytes, held.mostBytes) else { return false }
        // A large call is kept as it arrived. Its size is limited by what the bus lets through.
        guard let kept = size == nil ? call : call.copy(on: connection.bus) else {
            giveBack(added)
            return false
        }
        sender.append(kept, added)
        held = held + added
        if let user = sender.user { heldOfUsers[user] = heldOfUsers[user, default: Held()] + added }
        return true
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

    /// Goes on with the bus's answer. Tests call it too.
    func answered(_ name: String, _ answer: Result<Credentials, any Error>) {
        guard let sender = senders[name] else { return }
        let credentials: Credentials
        do { credentials = try answer.get() } catch {
            // Refusing thousands of calls takes long, and of a sender that is gone there is nobody to tell.
            let error = BusError(error)
            if error.name == BusError.nameHasNoOwner { return discard(name) }
            // A bus that is too busy to answer has not said that the sender is nobody. The sender's next call asks again.
            return refuse(name, error.name == BusError.accessDenied.name ? .accessDenied : Self.unnamed)
        }
        guard let examine = connection.peers.examine else { return giveBack(name, credentials, nil) }
        let heldOfUser = heldOfUsers[credentials.uid, default: Held()] + sender.held
        senders[name]?.user = credentials.uid
        heldOfUsers[credentials.uid] = heldOfUser
        guard heldOfUser.fitsUser else { return refuse(name, Self.tooMuch) }
        examine(credentials) { [weak self] result in
            switch result {
            case .success(let context): self?.giveBack(name, credentials, context)
            case .failure(let error): self?.refuse(name, error)
            }
        }
    }

    /// Takes a sender's next call, which is no longer held.
    private func takeCall(of name: String) -> Message? {
        guard let (call, size) = senders[name]?.takeFirst() else { return nil }
        giveBack(size)
        held = held - size
        return call
    }

    private func giveBack(_ size: Held) { _ = takeMemory(-size.mostBytes, held.mostBytes) }

    /// Counts a sender's calls no longer against its user, because it has been examined.
    private func noteExamined(_ name: String) {
        guard let sender = senders[name], let user = sender.user else { return }
        senders[name]?.user = nil
        let rest = heldOfUsers[user, default: Held()] - sender.held
        let isNothing = rest.bytes == 0 && rest.largeCalls == 0
        heldOfUsers[user] = isNothing ? nil : rest
        if !isNothing { return }
        for name in refusedOfUsers.removeValue(forKey: user) ?? [] {
            senders[name]?.isRefused = false
            endIfDone(name)
        }
    }

    /// Drops the calls of a sender that is gone.
    private func discard(_ name: String) {
        noteExamined(name)
        while takeCall(of: name) != nil {}
        senders[name] = nil
    }

    /// Refuses a sender's calls, also later ones as long as calls of its user are held: the bus need not be asked again,
    /// and the number of refusals stays bounded.
    private func refuse(_ name: String, _ error: BusError) {
        let user = senders[name]?.user
        noteExamined(name)
        senders[name]?.verdict = error
        if let user, heldOfUsers[user] != nil {
            senders[name]?.isRefused = true
            refusedOfUsers[user, default: []].append(name)
        }
        giveSomeBack(of: name)
    }

    /// Makes a sender known, and gives its first calls back to libsystemd. The others wait in line.
    private func giveBack(_ name: String, _ credentials: Credentials, _ context: PeerContext?) {
        let peer = Peer(name, credentials, on: connection.reference)
        peer.context = context
        connection.peers.insert(peer)
        let hasUnanswered = senders[name]?.refusals == Self.refusalLimit
        noteExamined(name)
        senders[name]?.peer = peer
        giveSomeBack(of: name)
        if hasUnanswered { onUnanswered?(peer) }
    }

    private func giveSomeBack(of name: String) {
        for _ in 0..<Self.mostAtOnce {
            guard let call = takeCall(of: name) else { break }
            if let verdict = senders[name]?.verdict {
                senders[name]?.refusals += 1
                refuse(call, verdict)
            } else {
                giveBack(call, of: name)
            }
        }
        endIfDone(name)
        if senders[name]?.holdsCalls == true { line.append(name) }
    }

    private func giveBack(_ call: Message, of name: String) {
        if sd_bus_enqueue_for_read(connection.bus, call.message) >= 0 {
            senders[name]?.returned += 1
        } else {
            refuse(call, Self.tooMuch)
        }
    }

    /// Gives some more calls back, after a round, unless some of the last ones are still to be dispatched.
    func giveMoreBack() {
        while let name = line.first, senders[name]?.returned ?? 0 == 0 {
            line.removeFirst()
            giveSomeBack(of: name)
            // The others follow in the next rounds.
            if senders[name] != nil { return }
        }
    }

    private func endIfDone(_ name: String) {
        if let sender = senders[name], sender.returned == 0, !sender.holdsCalls, !sender.isRefused {
            senders[name] = nil
        }
    }

    /// Whether calls are still held that need not wait for an answer of the bus.
    var isGivingBack: Bool { !line.isEmpty }

    /// Whether calls are held, or were given back and are not dispatched yet.
    var holdsCalls: Bool { senders.values.contains { !$0.isRefused || $0.holdsCalls } }

    private func refuse(_ call: Message, _ error: BusError) {
        // Without a connection there is no one to tell.
        try? call.sendError(error, weighedFor: nil, on: connection)
    }

    private static let unnamed = BusError.limitsExceeded("The bus has not said who sends this. Call again.")
    private static let tooMuch = BusError.limitsExceeded(
        "Too much was sent before it was known who sends it. Call again.")
}
