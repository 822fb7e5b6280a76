// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// A method call that expects an answer.
///
/// A handler that returns without ``reply(_:)`` or ``fail(_:)`` defers the answer, and keeps this object to answer later.
/// If the last reference is released without an answer, the caller gets an error.
///
/// Not Sendable: it is held and released by code of ``BusActor`` only.
package final class MethodCall {
    /// The call, positioned at its arguments.
    package private(set) var message: Message
    /// The caller.
    package let peer: Peer
    /// Whether ``reply(_:)`` or ``fail(_:)`` was called.
    package private(set) var isAnswered = false
    /// The owner of the reply's signature, to which libsystemd keeps a pointer in `message`.
    private let table: VTable?
    private let connection: BusConnection

    init(_ message: Message, peer: Peer, on connection: BusConnection, table: VTable?) {
        self.message = message
        self.peer = peer
        self.connection = connection
        self.table = table
    }

    deinit {
        fail(.failed("The call was not answered."))
    }

    /// Releases the arguments, and whatever else came with the call. From now on it can only be answered.
    @BusActor
    package func releaseArguments() {
        if let copy = message.copy(on: connection.bus, withArguments: false) { message = copy }
    }

    /// Answers with what `build` writes, if an answer is expected and none was given.
    ///
    /// If `build` throws, or writes something other than the interface says, the caller gets that error instead.
    ///
    /// - Throws: ``BusError`` if the connection is gone.
    ///
    /// The corresponding C functions are ``sd_bus_message_new_method_return`` and ``sd_bus_send``.
    package func reply(_ build: (Message) throws -> Void = { _ in }) throws(BusError) {
        guard takeTurn() else { return }
        do {
            try message.sendReturn(build, weighedFor: peer, on: connection)
        } catch {
            try message.sendError(BusError(error), weighedFor: peer, on: connection)
        }
    }

    /// Answers with an error, if an answer is expected and none was given.
    ///
    /// The corresponding C function is ``sd_bus_reply_method_error``.
    package func fail(_ error: BusError) {
        guard takeTurn() else { return }
        // Without a connection there is no caller to tell.
        try? message.sendError(error, weighedFor: peer, on: connection)
    }

    /// Returns whether to send an answer; true only once.
    private func takeTurn() -> Bool {
        if isAnswered { return false }
        isAnswered = true
        return message.expectsReply
    }
}

extension Message {
    fileprivate func sendReturn(
        _ build: (Message) throws -> Void,
        weighedFor peer: Peer,
        on connection: BusConnection
    ) throws {
        var reply: OpaquePointer?
        try check(sd_bus_message_new_method_return(message, &reply), "answering")
        guard let reply else { return }
        let answer = Message(owning: reply)
        answer.limit = Self.largestAnswer
        try build(answer)
        if answer.size > Self.largeAnswer, !connection.admits(self, from: peer, answering: answer.size) { return }
        let result = sd_bus_send(nil, reply, nil)
        // libsystemd compares signatures, and reports a difference only as this.
        if result == -ENOMSG { throw BusError.failed("The answer isn't of the type that the interface says.") }
        try check(result, "answering")
        connection.weigh(answer.size, for: peer)
    }

    func sendError(_ error: BusError, weighedFor peer: Peer?, on connection: BusConnection) throws(BusError) {
        let result = error.name.withCString { name in
            error.text.withCString { message in
                var error = sd_bus_error(name: name, message: message, _need_free: 0)
                return sd_bus_reply_method_error(self.message, &error)
            }
        }
        try check(result, "answering")
        if let peer { connection.weigh(error.text.utf8.count + 5, for: peer) }
    }
}

extension BusConnection {
    nonisolated fileprivate func admits(_ call: Message, from peer: Peer, answering bytes: Int) -> Bool {
        BusActor.assumeIsolated(lending: (self, call, peer)) { connection, call, peer in
            connection.admitLargeAnswer?(IncomingCall(call, peer, connection), bytes) ?? true
        }
    }

    /// Reports how many bytes were sent to a peer. A message's header adds about 128 to its body.
    nonisolated func weigh(_ bytes: Int, for peer: Peer) {
        BusActor.assumeIsolated(lending: (self, peer, bytes + 128), Self.noteSent)
    }

    private static func noteSent(_ sent: (connection: BusConnection, peer: Peer, bytes: Int)) {
        sent.connection.onSent?(sent.peer, sent.bytes)
    }
}
