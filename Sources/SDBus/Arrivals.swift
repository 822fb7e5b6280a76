// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Holds calls of senders that aren't known yet, until the bus has said who they are.
///
/// The bus is asked without blocking, because its answer comes after all that others have sent before. Blocking would
/// mean reading and holding all of it first, so a caller that pipelines would keep everyone waiting. After the answer,
/// the calls are given back to libsystemd, in order and before later arrivals. Polkit's users do the same.
@BusActor
final class Arrivals {
    private unowned let connection: BusConnection
    private var senders: [String: Sender] = [:]
    /// The peers whose calls were given back, with the calls not dispatched yet. Such a peer must not be forgotten.
    private var returning: [String: (peer: Peer, calls: Int)] = [:]
    private var heldBytes = 0
    private var largeCalls = 0
    /// How often the bus was asked, for tests.
    private(set) var requests = 0

    /// The bytes that one sender's calls may take: a thousand small calls.
    static let senderLimit = 256 << 10
    /// The bytes that all senders' calls may take.
    static let limit = 64 << 20
    /// The size in bytes above which a call is large. Counting the rest would take as long as reading it.
    static let largeCall = 64 << 10
    /// The number of large calls that may be held. Each may have what the bus lets through, 32 MiB.
    static let largeLimit = 2
    /// The bytes that a call takes besides its arguments.
    static let overhead = 256
    /// The number of refusals sent to one sender. They aren't weighed, so later calls get no answer at all.
    static let refusalLimit = 256

    private struct Sender {
        var calls: [Message] = []
        var bytes = 0
        var largeCalls = 0
        var refusals = 0
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
        let fits =
            size.map { sender.bytes + $0 <= Self.senderLimit && heldBytes + $0 <= Self.limit }
            ?? (largeCalls < Self.largeLimit)
        // A large call is kept as it arrived. Its size is limited by what the bus lets through.
        guard fits, let kept = size == nil ? call : call.copy(on: connection.bus) else {
            sender.refusals += 1
            return refuse(call, Self.tooMuch)
        }
        sender.calls.append(kept)
        sender.bytes += size ?? 0
        heldBytes += size ?? 0
        if size == nil {
            sender.largeCalls += 1
            largeCalls += 1
        }
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
        guard let sender = senders.removeValue(forKey: name) else { return }
        heldBytes -= sender.bytes
        largeCalls -= sender.largeCalls
        guard case .success(let credentials) = credentials else {
            for call in sender.calls { refuse(call, .accessDenied) }
            return
        }
        let peer = Peer(name, credentials, on: connection.reference)
        connection.peers.insert(peer)
        var returned = 0
        for call in sender.calls {
            if sd_bus_enqueue_for_read(connection.bus, call.message) >= 0 {
                returned += 1
            } else {
                refuse(call, Self.tooMuch)
            }
        }
        if returned > 0 { returning[name] = (peer, returned) }
    }

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
        "Too much was sent before the bus had said who sends it. Call again.")
}
