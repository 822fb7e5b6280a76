// SPDX-License-Identifier: Apache-2.0

internal import StoreBus

/// Method calls. None waits for its reply.
///
/// With `later`, ``RawClient/turn(waiting:)`` sends the call when there is room; otherwise it is sent at once.
extension RawClient {
    /// Calls a method.
    public func call(
        _ destination: String,
        _ path: String,
        _ interface: String,
        _ member: String,
        signature: String = "",
        body: [UInt8] = [],
        later: Bool = false
    ) {
        var message = WireMessage()
        (message.destination, message.path, message.interface) = (destination, path, interface)
        (message.member, message.signature, message.body) = (member, signature, body)
        let bytes = message.bytes(serial: nextSerial())
        if later { enqueue(bytes) } else { send(bytes) }
    }

    /// Calls a store's method.
    public func store(_ path: String, _ member: String, signature: String, body: [UInt8], later: Bool = false) {
        call(BusNames.service, path, BusNames.storeInterface, member, signature: signature, body: body, later: later)
    }

    /// Calls a store's method with arguments of the type `t`.
    public func store(_ path: String, _ member: String, _ arguments: UInt64..., later: Bool = false) {
        var body = Wire()
        for argument in arguments { body.number(argument) }
        let signature = String(repeating: "t", count: arguments.count)
        store(path, member, signature: signature, body: body.bytes, later: later)
    }

    /// Asks for a key's history, and expects no reply.
    public func historyUnanswered(_ path: String, _ key: String) {
        var body = Wire()
        body.string(key)
        body.number(0 as UInt64)
        send(unansweredCall(path, "GetHistory", signature: "st", body.bytes))
    }

    /// Sets a key's value to a number.
    public func set(_ path: String, _ key: String, _ number: UInt32, later: Bool = false) {
        var body = Wire()
        body.string(key)
        body.signature("u")
        body.number(number)
        store(path, "SetValue", signature: "sv", body: body.bytes, later: later)
    }

    /// Sets a key's value to a number of bytes, with a call that expects no reply.
    public func setUnanswered(_ path: String, _ key: String, bytes count: Int) {
        send(unansweredCall(path, key, bytes: count))
    }

    /// Sends such calls without a pause, many at a time, until the connection is closed.
    public func floodUnanswered(_ path: String, _ key: String, bytes count: Int) {
        var calls: [UInt8] = []
        repeat { calls += unansweredCall(path, key, bytes: count) } while calls.count < 1 << 16
        // The calls may share serial numbers, since they get no replies.
        while !isClosed() { send(calls) }
    }

    private func unansweredCall(_ path: String, _ key: String, bytes count: Int) -> [UInt8] {
        var body = Wire()
        body.string(key)
        body.signature("ay")
        body.array(alignment: 1) { $0.bytes += [UInt8](repeating: 1, count: count) }
        return unansweredCall(path, "SetValue", signature: "sv", body.bytes)
    }

    private func unansweredCall(_ path: String, _ member: String, signature: String, _ body: [UInt8]) -> [UInt8] {
        var message = WireMessage()
        (message.flags, message.destination, message.path) = (1, BusNames.service, path)
        (message.interface, message.member) = (BusNames.storeInterface, member)
        (message.signature, message.body) = (signature, body)
        return message.bytes(serial: nextSerial())
    }

    /// Asks for a key's value.
    public func get(_ path: String, _ key: String) {
        var body = Wire()
        body.string(key)
        store(path, "GetValue", signature: "s", body: body.bytes)
    }

    /// Requests a whole store as often as the system bus lets a connection wait for replies, less one.
    public func askForMuch(_ path: String) {
        for _ in 0..<127 { store(path, "GetSnapshot", 0, 0) }
    }

    /// Sends a signal without arguments; to all connections if there is no destination.
    public func signal(to destination: String?, _ interface: String, _ member: String) {
        var message = WireMessage()
        (message.type, message.flags) = (4, 1)
        (message.destination, message.path, message.interface, message.member) = (destination, "/", interface, member)
        send(message.bytes(serial: nextSerial()))
    }

    /// Returns once a reply has come that is awaited.
    /// - Throws: ``ConnectionEnded`` if the connection has ended.
    public func hear(_ isAwaited: (WireReply) -> Bool) throws {
        while true {
            guard let replies = turn(waiting: 1000) else { throw ConnectionEnded() }
            if replies.contains(where: isAwaited) { return }
        }
    }

    /// Returns once the service has answered.
    public func hearService() throws { try hear { $0.type == 2 && $0.sender != "org.freedesktop.DBus" } }

    /// Returns once the bus has passed on all calls so far: it has answered one to itself.
    public func awaitBus() throws {
        addMatch("type='signal',path='/nowhere'")
        try hear { $0.type == 2 && $0.sender == "org.freedesktop.DBus" }
    }

    /// The connection of a client that waits has ended.
    public struct ConnectionEnded: Error {}

    /// Adds a match rule.
    public func addMatch(_ rule: String) {
        var body = Wire()
        body.string(rule)
        call(
            "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus", "AddMatch", signature: "s",
            body: body.bytes)
    }
}
