// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Admission: each call passes one place before libsystemd looks for an object, whoever would answer it.
///
/// libsystemd answers a good part of the calls by itself: introspection, properties, and everything that is wrong. What it
/// sends counts against this connection as much as what a handler sends, so a service that bounds what its callers leave
/// unread has to decide here.
extension BusConnection {
    /// Has `admit` decide about each call.
    ///
    /// - Parameter admit: returns true to have the call dispatched now. With false it has taken the call over: it answers
    ///   with ``IncomingCall/refuse(_:)``, goes on with ``IncomingCall/dispatch()`` later, or never answers. It isn't
    ///   asked for callers of whom the bus can't say which user they are: they get AccessDenied.
    /// - Parameter hears: is asked before, of calls that want no answer: with false they are dropped as fast as they can
    ///   be read. Nothing slows down whoever sends them, so what is done for each is done for as many as are sent.
    /// - Throws: ``BusError`` if there is no memory left.
    ///
    /// The corresponding C function is ``sd_bus_add_filter``.
    public func admitCalls(
        _ admit: @escaping @BusActor (IncomingCall) -> Bool,
        ifUnanswered hears: @escaping @BusActor (Peer) -> Bool = { _ in true }
    ) throws(BusError) {
        let admission = try startAdmission()
        (admission.admit, admission.hears) = (admit, hears)
    }

    /// Has each call pass admission; nothing changes if it does already.
    @discardableResult
    func startAdmission() throws(BusError) -> Admission {
        if let admission { return admission }
        var slot: OpaquePointer?
        let started = Admission(self)
        try check(
            sd_bus_add_filter(bus, &slot, admitCall, Unmanaged.passUnretained(started).toOpaque()), "a filter")
        guard let slot else { throw BusError(errno: ENOMEM) }
        started.slot = Slot(owning: slot)
        admission = started
        return started
    }
}

/// A call before its object is looked for.
@BusActor
public struct IncomingCall {
    /// The call, at the beginning of its arguments.
    public let message: Message
    /// Who calls.
    public let peer: Peer
    private let connection: BusConnection

    init(_ message: Message, _ peer: Peer, _ connection: BusConnection) {
        self.message = message
        self.peer = peer
        self.connection = connection
    }

    /// Answers with an error.
    public func refuse(_ error: BusError) {
        // Without a connection there is nobody to tell.
        try? message.sendError(error, weighedFor: peer, on: connection)
    }

    /// The same call for later, in memory of its own: it has nothing but its names and its arguments, whatever else came
    /// with it. Both are at the beginning of their arguments then.
    ///
    /// - Returns: `nil` if the arguments are broken.
    public func kept() -> IncomingCall? {
        defer { try? message.rewind() }
        return message.copy(on: connection.bus).map { IncomingCall($0, peer, connection) }
    }

    /// Goes on with a call that was not admitted before.
    ///
    /// Methods of registered interfaces, and reading properties. What else libsystemd would have answered by itself is
    /// refused with LimitsExceeded, since it can't be asked a second time.
    public func dispatch() {
        if connection.objects.dispatch(message, from: peer, on: connection) { return }
        refuse(.limitsExceeded("Too many answers were unread when this was called; call again."))
    }
}

/// The one place that each call passes: what the filter's userdata leads to.
@BusActor
final class Admission {
    var admit: (@BusActor (IncomingCall) -> Bool)?
    /// Whether a peer's call that wants no answer is looked at.
    var hears: @BusActor (Peer) -> Bool = { _ in true }
    var slot: Slot?
    let arrivals: Arrivals
    private unowned let connection: BusConnection

    init(_ connection: BusConnection) {
        self.connection = connection
        arrivals = Arrivals(at: connection)
    }

    /// Whether a message is dispatched now.
    func decide(_ message: OpaquePointer) -> Bool {
        guard sd_bus_message_is_method_call(message, nil, nil) > 0 else { return true }
        guard let peer = connection.peers.peer(of: message) else {
            // Without a bus there is nobody to ask. The call is refused where it is dispatched.
            if connection.isBusClient { arrivals.hold(Message(retaining: message)) }
            return !connection.isBusClient
        }
        arrivals.noteDispatch(from: peer)
        // Before objects are made of the message, which would take longer than all of this.
        if sd_bus_message_get_expect_reply(message) == 0, !hears(peer) { return false }
        guard let admit else { return true }
        return admit(IncomingCall(Message(retaining: message), peer, connection))
    }
}

/// sd_bus_message_handler_t of the filter.
private func admitCall(
    _ message: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    // 1: the call has been taken over.
    BusActor.assumeIsolated(lending: (message, userdata), isAdmitted) ? 0 : 1
}

@BusActor
private func isAdmitted(_ lent: (message: OpaquePointer?, userdata: UnsafeMutableRawPointer?)) -> Bool {
    guard case (let message?, let userdata?) = lent else { return true }
    return Unmanaged<Admission>.fromOpaque(userdata).takeUnretainedValue().decide(message)
}
