// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// Calls to other programs, and signals from them.
extension BusConnection {
    /// Calls a method and waits for the answer, without blocking the loop.
    ///
    /// - Parameters:
    ///   - destination: a bus name; `nil` without a bus.
    ///   - timeout: the time to wait for the answer; libsystemd's 25 s if `nil`.
    ///   - build: writes the arguments.
    ///   - decode: reads the answer, which doesn't leave the loop's thread.
    /// - Returns: what `decode` makes of the answer.
    /// - Throws: the ``BusError`` that the other end answered with, or one if there was no answer; `CancellationError`
    ///   if the task is cancelled, which the other end doesn't learn; what `build` and `decode` throw.
    ///
    /// The corresponding C function is ``sd_bus_call_async``.
    public func call<Value: Sendable>(
        _ destination: String?,
        _ path: String,
        _ interface: String,
        _ member: String,
        timeout: Duration? = nil,
        build: (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> Value
    ) async throws -> Value {
        let message = try newCall(destination, path, interface, member)
        try build(message)
        let handle = CallHandle()
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                do {
                    handle.call = try start(message, timeout: timeout) { answer in
                        continuation.resume(with: answer.flatMap { answer in .init { try decode(answer) } })
                    }
                } catch {
                    continuation.resume(throwing: error)
                }
            }
        } onCancel: {
            EventLoop.task { handle.call?.finish(.failure(CancellationError())) }
        }
    }

    /// Calls a method and waits for an answer of any kind, as ``call(_:_:_:_:timeout:build:decode:)`` does.
    ///
    /// It has another name, because a trailing closure could belong to either.
    public func invoke(
        _ destination: String?,
        _ path: String,
        _ interface: String,
        _ member: String,
        timeout: Duration? = nil,
        _ build: (Message) throws -> Void = { _ in }
    ) async throws {
        try await call(destination, path, interface, member, timeout: timeout, build: build, decode: { _ in })
    }

    /// Makes a call to the bus itself, for which nothing has to be started.
    func newBusCall(_ member: String) throws(BusError) -> Message {
        let name = "org.freedesktop.DBus"
        let call = try newCall(name, "/org/freedesktop/DBus", name, member)
        try check(sd_bus_message_set_auto_start(call.message, 0), "a call to the bus")
        return call
    }

    /// Asks the bus something. Its answer comes after all calls to this connection that the bus has read before.
    ///
    /// - Parameter answered: is called once, also if there is no answer, or no bus.
    package func askBus(then answered: @escaping @BusActor () -> Void) {
        do {
            guard isBusClient else { return answered() }
            try start(try newBusCall("GetId"), timeout: nil) { _ in answered() }
        } catch { answered() }
    }

    func newCall(
        _ destination: String?,
        _ path: String,
        _ interface: String,
        _ member: String
    ) throws(BusError) -> Message {
        var message: OpaquePointer?
        let result = sd_bus_message_new_method_call(bus, &message, destination, path, interface, member)
        try check(result, "a call")
        guard let message else { throw BusError(errno: ENOMEM) }
        return Message(owning: message)
    }

    /// Sends a call. `completion` gets the answer, or the error in its place, exactly once.
    @discardableResult
    func start(_ message: Message, timeout: Duration?, _ completion: @escaping PendingCall.Completion)
        throws(BusError) -> PendingCall
    {
        let call = PendingCall(on: self, completion)
        var slot: OpaquePointer?
        let result = sd_bus_call_async(
            bus,
            &slot,
            message.message,
            finishCall,
            Unmanaged.passUnretained(call).toOpaque(),
            // 0 would be libsystemd's default.
            timeout.map { max(1, $0.microseconds) } ?? 0
        )
        try check(result, "a call")
        call.slot = slot.map { Slot(owning: $0) }
        pendingCalls[ObjectIdentifier(call)] = call
        return call
    }

    /// Fails all calls. libsystemd does so when the other end is gone, but not when we close.
    func failPendingCalls() {
        for call in Array(pendingCalls.values) {
            call.finish(.failure(BusError.disconnected("The connection was closed.")))
        }
    }

    // MARK: Signals

    /// Calls `handler` with each message that matches a rule, as long as the slot is held.
    ///
    /// Any program may send a signal that looks like another's, so name the `sender` in the rule. If that is the bus, the
    /// signals of others are left out; the owner of another name is for the handler to compare.
    ///
    /// - Throws: ``BusError`` if the bus refuses the rule.
    ///
    /// The corresponding C function is ``sd_bus_add_match_async``.
    public func addMatch(_ rule: String, _ handler: @escaping @BusActor (Message) -> Void) async throws -> Slot {
        let target = MatchTarget(onlyFromBus: rule.contains("sender='\(Self.bus)'"), handler)
        // Without a bus, the rule doesn't have to be sent.
        guard isBusClient else { return try addMatch(rule, target, installed: nil) }
        var slot: Slot?
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            target.whenInstalled = { continuation.resume(with: $0) }
            do {
                slot = try addMatch(rule, target, installed: finishMatch)
            } catch {
                continuation.resume(throwing: error)
            }
        }
        guard let slot else { throw BusError(errno: ENOMEM) }
        return slot
    }

    /// - Parameter installed: handles the bus's answer. If `nil`, a refusal makes libsystemd end the connection.
    func addMatch(
        _ rule: String,
        _ target: MatchTarget,
        installed: sd_bus_message_handler_t?
    ) throws(BusError) -> Slot {
        var slot: OpaquePointer?
        let userdata = Unmanaged.passUnretained(target).toOpaque()
        let result =
            isBusClient
            ? sd_bus_add_match_async(bus, &slot, rule, handleMatch, installed, userdata)
            : sd_bus_add_match(bus, &slot, rule, handleMatch, userdata)
        try check(result, "a match rule")
        guard let slot else { throw BusError(errno: ENOMEM) }
        return Slot(owning: slot, target: target)
    }
}

/// A call that isn't answered yet.
@BusActor
final class PendingCall {
    typealias Completion = @BusActor (Result<Message, any Error>) -> Void

    var slot: Slot?
    private let reference: ConnectionReference
    private var completion: Completion?

    init(on connection: BusConnection, _ completion: @escaping Completion) {
        reference = connection.reference
        self.completion = completion
    }

    /// Ends the call; does nothing if it has ended.
    func finish(_ result: Result<Message, any Error>) {
        guard let completion else { return }
        self.completion = nil
        slot = nil
        reference.connection?.pendingCalls[ObjectIdentifier(self)] = nil
        completion(result)
    }
}

/// Connects a task's cancellation with its call.
@BusActor
private final class CallHandle {
    var call: PendingCall?

    nonisolated init() {}
}

/// The target of a match's userdata.
@BusActor
final class MatchTarget {
    private let handler: @BusActor (Message) -> Void
    /// Whether the rule names the bus as the sender. libsystemd doesn't compare senders with names, and before this
    /// process has its name, any program can send it signals that look like the bus's.
    private let isOnlyFromBus: Bool
    /// Called once, when the bus has answered.
    var whenInstalled: (@BusActor (Result<Void, any Error>) -> Void)?

    init(onlyFromBus isOnlyFromBus: Bool, _ handler: @escaping @BusActor (Message) -> Void) {
        (self.isOnlyFromBus, self.handler) = (isOnlyFromBus, handler)
    }

    func handle(_ signal: Message) {
        if !isOnlyFromBus || signal.sender == BusConnection.bus { handler(signal) }
    }
}

// MARK: Callbacks of libsystemd

private func finishCall(
    _ message: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    receiving(message, userdata, as: PendingCall.self) { call, answer in
        call.finish(answer.error.map { .failure($0) } ?? .success(answer))
    }
    return 1
}

private func handleMatch(
    _ message: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    receiving(message, userdata, as: MatchTarget.self) { target, signal in target.handle(signal) }
    // 0: others may want the signal too.
    return 0
}

private func finishMatch(
    _ message: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    receiving(message, userdata, as: MatchTarget.self) { target, answer in
        let whenInstalled = target.whenInstalled
        target.whenInstalled = nil
        whenInstalled?(answer.error.map { .failure($0) } ?? .success(()))
    }
    return 1
}

/// Passes a message from a callback of libsystemd to the target of its userdata.
@inline(__always)
func receiving<Target: AnyObject>(
    _ message: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    as type: Target.Type,
    _ body: @escaping @BusActor (Target, Message) -> Void
) {
    BusActor.assumeIsolated(lending: (message, userdata, body), receive)
}

@BusActor
@inline(__always)
private func receive<Target: AnyObject>(
    _ lent: (OpaquePointer?, UnsafeMutableRawPointer?, body: @BusActor (Target, Message) -> Void)
) {
    guard case (let message?, let userdata?, let body) = lent else { return }
    body(Unmanaged<Target>.fromOpaque(userdata).takeUnretainedValue(), Message(retaining: message))
}
