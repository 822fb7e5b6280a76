// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A connection to a bus, or to another process without one.
///
/// Only code of ``BusActor`` uses it, on the loop's thread. It sends messages, calls others
/// (``call(_:_:_:_:timeout:build:decode:)``), and has objects for others to call (``register(_:at:_:)``). Its ``names``
/// and ``peers`` are objects of their own.
///
/// It doesn't use libsystemd's own attachment to an event loop, which dispatches one message at a time. This service
/// wants to know when everything that has arrived was dispatched (``afterDispatch``), to commit it in one transaction.
///
/// The corresponding C type is ``sd_bus``.
@BusActor
public final class BusConnection {
    let bus: OpaquePointer
    /// Whether there is a bus daemon at the other end.
    let isBusClient: Bool
    /// The name that the bus gave this connection; `nil` without a bus.
    public let uniqueName: String?

    /// Called once after each round of dispatching: after at most 64 messages, or a millisecond.
    package var afterDispatch: (@BusActor () -> Void)?
    /// Whether the last round has dispatched all that had arrived. If not, the next one follows at once.
    package internal(set) var isDrained = true
    /// Whether calls of peers that aren't known yet, or were examined (``Peers/examine``), are still to be dispatched.
    package var holdsCalls: Bool { admission?.arrivals.holdsCalls ?? false }
    /// Called when the other end is gone, or doesn't speak D-Bus; not after ``close()``. All calls have failed by then.
    package var onDisconnect: (@BusActor () -> Void)?
    /// Called with each answer and each signal to a peer, and its size in bytes.
    package var onSent: (@BusActor (Peer, Int) -> Void)?
    /// Called after each call that was admitted, whoever answers it, with its sender and the time since.
    package var onDispatched: (@BusActor (Peer, WorkTime) -> Void)? {
        get { dispatcher.onDispatched }
        set { dispatcher.onDispatched = newValue }
    }

    /// Leaves time that was spent for a user out of the measured time of the call being dispatched, unless the caller
    /// is that user.
    ///
    /// - Returns: whether the call's measured time has it.
    package func leaveOut(_ microseconds: UInt64, for uid: UInt32) -> Bool {
        dispatcher.leaveOut(microseconds, for: uid)
    }

    /// Decides by its size whether to send a method's answer of more than ``Message/largeAnswer`` bytes. If it returns
    /// false, the answer is dropped, and it has taken over the call, as ``admitCalls(_:)`` describes.
    package var admitLargeAnswer: (@BusActor (IncomingCall, Int) -> Bool)?
    /// The senders of messages.
    package let peers: Peers
    /// The names that this connection owns.
    package let names: OwnedNames

    let dispatcher: Dispatcher
    let objects = ObjectTable()
    /// The target of the event sources' userdata.
    let reference = ConnectionReference()
    /// Decides which calls are dispatched; `nil` while nothing is registered.
    var admission: Admission?
    var pendingCalls: [ObjectIdentifier: PendingCall] = [:]
    /// Whether the bus doesn't report what it holds for one connection, but does for all: dbus-broker.
    var reportsOnlyTotals = false
    private(set) lazy var accounting = PeerAccounting { [unowned self] in try await bytes(of: $0) }

    private init(_ opened: OpenedBus) throws(BusError) {
        (bus, isBusClient, uniqueName) = (opened.bus, opened.isBusClient, opened.uniqueName)
        dispatcher = Dispatcher(bus, opened.filtered)
        peers = Peers(bus, isBusClient: isBusClient, reference)
        names = OwnedNames(reference)
        reference.connection = self
        try dispatcher.start(reference)
    }

    isolated deinit {
        close()
        reference.connection = nil
        sd_bus_unref(bus)
    }

    // MARK: Opening

    /// Connects to a bus, and waits until it has assigned a name.
    ///
    /// No file descriptors are accepted in messages. Messages with header fields that the D-Bus Specification doesn't know
    /// are dropped (see ``HeaderFilter``), except on a bus that isn't at a local socket.
    ///
    /// - Parameters:
    ///   - description: a word for logs.
    ///   - leavesFilteringToBus: whether to connect once more without the filter, if the bus removes such fields itself.
    ///     For a connection that lasts, because the filter costs some microseconds for each message.
    /// - Throws: ``BusError`` if there is no bus, or if it refuses.
    ///
    /// The corresponding C functions are ``sd_bus_new``, ``sd_bus_set_address`` and ``sd_bus_start``.
    package static func open(
        _ address: BusAddress, description: String, leavingFilteringToBus leavesFilteringToBus: Bool = false
    ) throws(BusError) -> BusConnection {
        let address = try address.resolved()
        // The filter comes first. Unique names can be foretold, so messages may wait for one that is not given yet.
        if let opened = try OpenedBus.filtered(address, description) {
            let filtered = try BusConnection(opened)
            guard leavesFilteringToBus, try filtered.busFiltersHeaders() else { return filtered }
            filtered.close()
        }
        return try BusConnection(try OpenedBus.plain(address, description))
    }

    /// Asks whether the bus removes header fields that it doesn't know, as its feature `HeaderFiltering` says. Waits for
    /// the answer.
    private func busFiltersHeaders() throws(BusError) -> Bool {
        guard let filtered = dispatcher.filtered else { return false }
        let call = try newCall(Self.bus, Self.busPath, "org.freedesktop.DBus.Properties", "Get")
        try call.append(Self.bus)
        try call.append("Features")
        let answer = Answer()
        try start(call, timeout: nil) { answer.result = $0 }
        while answer.result == nil { try filtered.advance(bus) }
        guard let message = try? answer.result?.get() else { return false }
        let features = try? message.enterVariant() ? message.readStrings(atMost: 1000) : []
        return features?.contains("HeaderFiltering") == true
    }

    @BusActor
    private final class Answer {
        var result: Result<Message, any Error>?
    }

    /// Makes two connections, each the other's peer, without a bus; for tests.
    ///
    /// Both are on the same thread, so blocking on one (``flush()``) may wait for the other forever.
    ///
    /// - Throws: ``BusError`` if there are no file descriptors left.
    package static func pair() throws(BusError) -> (BusConnection, BusConnection) {
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw BusError(errno: errno, "a pair of sockets") }
        return (
            try BusConnection(try OpenedBus.end(ends[0], isServer: true)),
            try BusConnection(try OpenedBus.end(ends[1], isServer: false))
        )
    }

    // MARK: Sending and closing

    /// Whether messages can be sent.
    public var isOpen: Bool {
        sd_bus_is_open(bus) > 0
    }

    /// Sends a message. What the socket doesn't take at once is sent later. A call sent this way gets no answer.
    ///
    /// - Throws: ``BusError`` if the connection is gone, or if too much waits to be sent.
    ///
    /// The corresponding C function is ``sd_bus_send``.
    public func send(_ message: Message) throws(BusError) {
        try check(sd_bus_send(bus, message.message, nil), "sending a message")
    }

    /// Makes a signal to one recipient, to be written and sent. There are no broadcasts, which every user may read.
    ///
    /// - Throws: ``BusError`` if the path, interface, member or destination is invalid.
    ///
    /// The corresponding C functions are ``sd_bus_message_new_signal`` and ``sd_bus_message_set_destination``.
    package func newSignal(
        _ path: String,
        _ interface: String,
        _ member: String,
        to destination: String
    ) throws(BusError) -> Message {
        var message: OpaquePointer?
        try check(sd_bus_message_new_signal(bus, &message, path, interface, member), "a signal")
        guard let message else { throw BusError(errno: ENOMEM) }
        let signal = Message(owning: message)
        // Without a bus, the destination is the other end, which has no name.
        if isBusClient { try check(sd_bus_message_set_destination(message, destination), "a signal's destination") }
        return signal
    }

    /// Sends a signal to one peer.
    ///
    /// - Parameter build: writes the arguments.
    /// - Throws: ``BusError`` if the connection is gone, or if the signal would be larger than
    ///   ``Message/largestAnswer``; what `build` throws.
    package func signal(
        _ path: String,
        _ interface: String,
        _ member: String,
        to peer: Peer,
        _ build: (Message) throws -> Void
    ) throws {
        let signal = try newSignal(path, interface, member, to: peer.uniqueName)
        signal.limit = Message.largestAnswer
        try build(signal)
        try send(signal)
        onSent?(peer, signal.size)
    }

    /// Waits until everything is sent.
    ///
    /// The corresponding C function is ``sd_bus_flush``.
    package func flush() {
        sd_bus_flush(bus)
    }

    /// Ends the connection: nothing more comes in or goes out, calls fail, and all closures given to it are released.
    ///
    /// Messages that wait to be sent are lost, unless ``flush()`` was called before.
    ///
    /// The corresponding C function is ``sd_bus_close``.
    public func close() {
        dispatcher.stop()
        sd_bus_close(bus)
        dispatcher.filtered?.close()
        // Before the calls fail, because admission's questions to the bus must not find a connection that is closing.
        admission = nil
        failPendingCalls()
        names.close()
        peers.close()
        afterDispatch = nil
        onSent = nil
        admitLargeAnswer = nil
        onDisconnect = nil
    }

    /// Closes the connection, because the other end is gone.
    func disconnected() {
        let onDisconnect = onDisconnect
        close()
        onDisconnect?()
    }
}

/// An unowned reference to a connection, which is `nil` once that is gone. Used on the loop's thread only.
///
/// Not `weak`, because each message retains and releases the connection. For an object that ever had a weak reference,
/// that takes the slow path, several times as long.
final class ConnectionReference {
    unowned(unsafe) var connection: BusConnection?
    // unsafe is safe because deinit sets it to nil, on this same thread. While deinit waits for the thread, the memory
    // exists, and callbacks keep none of it: calls and registrations, which could, keep it alive.
}
