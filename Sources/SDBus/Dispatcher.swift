// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Decides when a connection's socket is read and written, and how much at a time.
///
/// Before each wait of the loop, ``prepare()`` asks libsystemd what to wait for, which changes with each message. So
/// messages that jobs and timers have queued are sent too.
@BusActor
final class Dispatcher {
    /// The messages and microseconds in a round, so that others on the loop get their turn.
    private static let roundLimit = 64
    private static let longestRound: UInt64 = 1000
    /// How many pieces of a long message are read at once.
    private static let piecesLimit = 8
    /// The number of messages that may wait to be sent before we stop reading.
    private static let writeLimit: UInt64 = 1024

    private let bus: OpaquePointer
    /// What passes on the messages that arrive; `nil` if the connection reads the bus's socket itself.
    let filtered: FilteredSocket?
    /// Whether the last round has left some of what was passed on, so that no socket of the bus tells of it.
    private var hasLeftSome = false
    private var readiness: OpaquePointer?
    /// The descriptor that the loop watches, or -1.
    private var watched: Int32 = -1
    private var deadline: OpaquePointer?
    /// The registration that remembers the object of the message being dispatched.
    var lookup: Registration?
    /// The sender of the call being dispatched, once it is admitted, and the time since.
    var timed: (peer: Peer, time: WorkTime)?
    /// The time since the message that is being processed began to be read.
    private var readingTime = WorkTime()
    /// Called after an admitted call was dispatched.
    var onDispatched: (@BusActor (Peer, WorkTime) -> Void)?

    init(_ bus: OpaquePointer, _ filtered: FilteredSocket?) {
        (self.bus, self.filtered) = (bus, filtered)
        // Since the connection began.
        hasLeftSome = filtered != nil
    }

    /// The socket of the bus; negative once the connection is closed.
    var socket: Int32 { filtered?.bus ?? sd_bus_get_fd(bus) }

    /// Makes the event loop watch the socket and libsystemd's timeouts.
    ///
    /// - Parameter reference: the target of the sources' userdata, which must live until ``stop()``.
    func start(_ reference: ConnectionReference) throws(BusError) {
        let event = EventLoop.shared.event
        let userdata = Unmanaged.passUnretained(reference).toOpaque()
        // A descriptor of our own: libsystemd closes its own before it tells us that the bus is gone. If a child that
        // was forked just then has a copy, the loop would report a source that is gone.
        let socket = try check(self.socket, "the socket of a connection")
        watched = fcntl(socket, F_DUPFD_CLOEXEC, 3)
        if watched < 0 { throw BusError(errno: errno, "the socket of a connection") }
        try check(sd_event_add_io(event, &readiness, watched, 0, connectionIsReady, userdata), "a socket")
        // A timeout may be a millisecond late.
        try check(
            sd_event_add_time(event, &deadline, CLOCK_MONOTONIC, .max, 1000, connectionIsDue, userdata),
            "a timeout"
        )
        try check(sd_event_source_set_prepare(readiness, connectionWaits), "a socket")
    }

    /// Removes this connection from the event loop.
    func stop() {
        readiness = sd_event_source_disable_unref(readiness)
        if watched >= 0 { Glibc.close(watched) }
        watched = -1
        deadline = sd_event_source_disable_unref(deadline)
    }

    /// Tells the loop what to wait for.
    /// - Parameter hasMore: whether there is something to do even if nothing arrives.
    fileprivate func prepare(hasMore: Bool) {
        let isCongested = isCongested
        let events = sd_bus_get_events(bus)
        // The bits of poll, which are those of epoll.
        var wanted = events < 0 ? 0 : UInt32(events)
        if isCongested { wanted &= ~EPOLLIN.rawValue }
        sd_event_source_set_io_events(readiness, wanted)

        var time: UInt64 = 0
        // dispatch() will see an error. Messages that were read during a blocking call wait with time 0, and have to
        // wait while we don't read.
        if events >= 0, sd_bus_get_timeout(bus, &time) < 0 { time = 0 }
        if hasLeftSome || hasMore { time = 0 }
        if isCongested { time = .max }
        sd_event_source_set_time(deadline, time)
        sd_event_source_set_enabled(deadline, Int32(time == .max ? SD_EVENT_OFF : SD_EVENT_ONESHOT))
    }

    /// Dispatches a round: what has arrived, in order, and then ``BusConnection/afterDispatch``.
    ///
    /// If the limit ends it, the socket is still readable, and the next turn of the loop continues.
    fileprivate func dispatch(for connection: BusConnection) {
        // The time of the processor costs a system call, which connections that measure nothing need not make.
        if onDispatched != nil { readingTime = WorkTime() }
        let end = EventLoop.now + Self.longestRound
        var count = 0
        var result = process()
        while result > 0 {
            count += 1
            // Reading the clock costs as much as a lookup, so not at every message.
            if count == Self.roundLimit || isCongested || (count % 8 == 0 && EventLoop.now >= end) { break }
            result = process()
        }
        hasLeftSome = filtered != nil && (result > 0 || filtered?.hasWaiting == true)
        connection.admission?.arrivals.giveMoreBack()
        connection.isDrained = result <= 0 && connection.admission?.arrivals.isGivingBack != true
        if count > 0 { connection.afterDispatch?() }
        if result < 0, !Self.isOfOneMessage(result) { connection.disconnected() }
    }

    /// Whether an error is only that of a message which libsystemd answers itself: without a machine id it can't tell one
    /// (`org.freedesktop.DBus.Peer.GetMachineId`, sd_id128_get_machine(3)).
    private static func isOfOneMessage(_ error: Int32) -> Bool {
        [ENOENT, ENOMEDIUM, ENOPKG, EUCLEAN].contains(-error)
    }

    private func process() -> Int32 {
        var result = processOne()
        if result == 0, let filtered {
            // A long message arrives in many pieces, and others on the loop get their turn.
            for _ in 0..<Self.piecesLimit where result == 0 {
                guard filtered.pump() else { break }
                result = processOne()
            }
        }
        lookup?.forgetObject()
        lookup = nil
        endTiming()
        return result
    }

    private func processOne() -> Int32 {
        // Reading a long call takes time as well.
        if onDispatched != nil { readingTime.restart() }
        return sd_bus_process(bus, nil)
    }

    /// Begins to measure the time that is spent for a caller, until the end of the message being dispatched or, without
    /// one, ``endTiming()``.
    func beginTiming(_ peer: Peer) {
        if onDispatched != nil { timed = (peer, WorkTime()) }
    }

    /// Does the same for the sender of the message that is being processed, from when that was read.
    func continueTiming(for peer: Peer) {
        if onDispatched != nil { timed = (peer, readingTime) }
    }

    func endTiming() {
        guard let ended = timed else { return }
        timed = nil
        onDispatched?(ended.peer, ended.time)
    }

    /// Leaves time out that was spent for a user, unless the caller is that user.
    /// - Returns: whether the call's time has it.
    func leaveOut(_ microseconds: UInt64, for uid: UInt32) -> Bool {
        guard let peer = timed?.peer else { return false }
        if peer.credentials.uid == uid { return true }
        timed?.time.leaveOut(microseconds)
        return false
    }

    private var isCongested: Bool {
        queuedWrites > Self.writeLimit
    }

    /// The number of messages that wait to be sent.
    var queuedWrites: UInt64 {
        var count: UInt64 = 0
        return sd_bus_get_n_queued_write(bus, &count) >= 0 ? count : 0
    }
}

// MARK: Callbacks of libsystemd

/// sd_event_io_handler_t.
private func connectionIsReady(
    _ source: OpaquePointer?, _ socket: Int32, _ events: UInt32, _ userdata: UnsafeMutableRawPointer?
) -> Int32 {
    BusActor.assumeIsolated(lending: userdata, dispatchConnection)
    return 0
}

/// sd_event_time_handler_t.
private func connectionIsDue(_ source: OpaquePointer?, _ time: UInt64, _ userdata: UnsafeMutableRawPointer?) -> Int32 {
    BusActor.assumeIsolated(lending: userdata, dispatchConnection)
    return 0
}

/// sd_event_handler_t, before the loop waits.
private func connectionWaits(_ source: OpaquePointer?, _ userdata: UnsafeMutableRawPointer?) -> Int32 {
    BusActor.assumeIsolated(lending: userdata, prepareConnection)
    return 0
}

@BusActor
private func dispatchConnection(_ userdata: UnsafeMutableRawPointer?) {
    guard let connection = connection(userdata) else { return }
    // Another thread may release its reference meanwhile.
    defer { extendLifetime(connection) }
    connection.dispatcher.dispatch(for: connection)
}

@BusActor
private func prepareConnection(_ userdata: UnsafeMutableRawPointer?) {
    guard let connection = connection(userdata) else { return }
    defer { extendLifetime(connection) }
    connection.dispatcher.prepare(hasMore: connection.admission?.arrivals.isGivingBack == true)
}

@BusActor
private func connection(_ userdata: UnsafeMutableRawPointer?) -> BusConnection? {
    guard let userdata else { return nil }
    return Unmanaged<ConnectionReference>.fromOpaque(userdata).takeUnretainedValue().connection
}
