// SPDX-License-Identifier: Apache-2.0

internal import CSystemd

/// Admission: one check of each call, before libsystemd looks for an object, whoever would answer.
///
/// libsystemd answers many calls itself: introspection, properties, and everything that is wrong. These answers count
/// against this connection as much as those of handlers. So a service that limits what its callers leave unread has to
/// decide here.
extension BusConnection {
    /// Lets `admit` decide about each call.
    ///
    /// - Parameter admit: returns true to dispatch the call now. If it returns false, it has taken over the call: it
    ///   answers with ``IncomingCall/refuse(_:)``, continues with ``IncomingCall/dispatch()`` later, or never answers.
    ///   It isn't called for callers whose user the bus can't tell: they get AccessDenied.
    /// - Parameter considersUnanswered: is called first, for calls that expect no reply. If it returns false, they are
    ///   dropped as fast as they can be read. Nothing slows their sender down, so any work for each is done for as many
    ///   as are sent.
    /// - Parameter noteUnanswered: is called when it becomes known who has sent so many calls before that some of them
    ///   get no answer.
    /// - Parameter takeMemory: is called before a call is kept whose sender isn't known yet, with the bytes that it may
    ///   take, and those that such calls take already. If it returns false, the call is refused. What is no longer kept
    ///   is given back as a negative number.
    /// - Throws: ``BusError`` if there is no memory left.
    ///
    /// The corresponding C function is ``sd_bus_add_filter``.
    package func admitCalls(
        _ admit: @escaping @BusActor (IncomingCall) -> Bool,
        ifUnanswered considersUnanswered: @escaping @BusActor (Peer) -> Bool = { _ in true },
        noteUnanswered: @escaping @BusActor (Peer) -> Void = { _ in },
        takeMemory: @escaping @BusActor (_ bytes: Int, _ own: Int) -> Bool = { _, _ in true }
    ) throws(BusError) {
        let admission = try startAdmission()
        (admission.admit, admission.considersUnanswered) = (admit, considersUnanswered)
        (admission.arrivals.onUnanswered, admission.arrivals.takeMemory) = (noteUnanswered, takeMemory)
    }

    /// Makes each call pass admission, unless it already does.
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

/// A call before its object is looked up.
@BusActor
package struct IncomingCall {
    /// The call, positioned at the beginning of its arguments.
    package let message: Message
    /// The caller.
    package let peer: Peer
    private let connection: BusConnection

    init(_ message: Message, _ peer: Peer, _ connection: BusConnection) {
        self.message = message
        self.peer = peer
        self.connection = connection
    }

    /// Answers with an error.
    package func refuse(_ error: BusError) {
        // Without a connection there is no one to tell.
        try? message.sendError(error, weighedFor: peer, on: connection)
    }

    /// Copies the call for later, into memory of its own. The copy has only its names and arguments, whatever else came
    /// with the call. Afterwards both are at the beginning of their arguments.
    ///
    /// - Parameter hasArguments: whether to keep the arguments, which a refusal doesn't need.
    /// - Returns: `nil` if the arguments are broken.
    package func kept(withArguments hasArguments: Bool = true) -> IncomingCall? {
        defer { try? message.rewind() }
        return message.copy(on: connection.bus, withArguments: hasArguments).map {
            IncomingCall($0, peer, connection)
        }
    }

    /// Continues with a call that was not admitted before.
    ///
    /// It handles calls of registered interfaces, reading properties, and Ping. Other calls, which libsystemd would have
    /// answered itself, are refused with LimitsExceeded, because libsystemd can't be asked a second time.
    package func dispatch() {
        let outer = connection.dispatcher.timed
        connection.dispatcher.beginTiming(peer)
        defer {
            connection.dispatcher.endTiming()
            connection.dispatcher.timed = outer
        }
        if connection.objects.dispatch(message, from: peer, on: connection) { return }
        refuse(.limitsExceeded("The user's other calls left no room or time for this, and it can't wait; call again."))
    }
}

/// The check that each call passes: the target of the filter's userdata.
@BusActor
final class Admission {
    var admit: (@BusActor (IncomingCall) -> Bool)?
    /// Decides whether a peer's call that expects no reply is considered.
    var considersUnanswered: @BusActor (Peer) -> Bool = { _ in true }
    var slot: Slot?
    let arrivals: Arrivals
    private unowned let connection: BusConnection

    init(_ connection: BusConnection) {
        self.connection = connection
        arrivals = Arrivals(at: connection)
    }

    /// Decides whether a message is dispatched now.
    func decide(_ message: OpaquePointer) -> Bool {
        guard sd_bus_message_is_method_call(message, nil, nil) > 0 else { return true }
        guard let peer = arrivals.sender(of: message, connection.peers.peer(of: message)) else {
            // Without a bus, no one can be asked. The call is refused when it is dispatched.
            if connection.isBusClient { arrivals.hold(Message(retaining: message)) }
            return !connection.isBusClient
        }
        // Before objects are made of the message, which would take longer than all of this.
        if sd_bus_message_get_expect_reply(message) == 0, !considersUnanswered(peer) { return false }
        guard let admit else { return true }
        // Looking at a call takes time as well, also at one that is refused.
        connection.dispatcher.continueTiming(for: peer)
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
