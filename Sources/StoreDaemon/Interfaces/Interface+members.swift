// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// The callers that may call a method or read a property.
enum PermittedCallers {
    /// Whoever finds the object.
    case everybody
    /// Callers outside of sandboxes, because the member is about more than an app's own data.
    case unsandboxed
    /// Root, outside of sandboxes.
    case root
    /// The same, and the service's own user.
    case administrators

    /// Returns why a caller is not one of them; `nil` if it is.
    @BusActor
    fileprivate func refusal(of peer: Peer, _ daemon: Daemon) -> BusError? {
        if self == .everybody { return nil }
        if daemon.clients.client(peer).isSandboxed { return .accessDenied("A sandboxed app may not do this.") }
        let uid = peer.credentials.uid
        let mayBe = self == .unsandboxed || uid == 0 || self == .administrators && uid == geteuid()
        return mayBe ? nil : .accessDenied("Only root may do this.")
    }
}

extension Interface.Member {
    /// Makes a method that doesn't see uncommitted writes, and whose errors are mapped for the client.
    @BusActor
    static func method(
        _ name: String, in arguments: KeyValuePairs<String, String> = [:],
        out results: KeyValuePairs<String, String> = [:], sensitive: Bool = false, by callers: PermittedCallers,
        on daemon: Daemon, _ handler: @escaping @BusActor (Object, MethodCall) throws -> Void
    ) -> Self {
        .method(name, in: arguments, out: results, sensitive: sensitive) { object, call in
            if let refusal = callers.refusal(of: call.peer, daemon) { throw refusal }
            try daemon.answer(object, call, committing: true, handler)
        }
    }

    /// Makes a method that writes, for everybody who finds the object. Its call is answered once the write is committed.
    @BusActor
    static func write(
        _ name: String, in arguments: KeyValuePairs<String, String>, on daemon: Daemon,
        _ handler: @escaping @BusActor (Object, MethodCall) throws -> Void
    ) -> Self {
        .method(name, in: arguments, out: ["generation": "t"]) { object, call in
            do { try daemon.answer(object, call, committing: false, handler) } catch let error as BusError {
                daemon.service.logRefusedWrite(error, of: call.peer.credentials.uid)
                throw error
            }
        }
    }
}

extension Interface.Member {
    /// Makes a property with its readers. Others get an empty value: no text, or zero. A property that can change doesn't
    /// show uncommitted writes.
    @BusActor
    static func property(
        _ name: String, _ type: String, changes: PropertyChanges, to readers: PermittedCallers, on daemon: Daemon,
        _ getter: @escaping @BusActor (Object, Message) throws -> Void
    ) -> Self {
        .unguardedProperty(name, type, changes: changes) { object, message, peer in
            if readers.refusal(of: peer, daemon) != nil { return try message.append(emptyOf: type) }
            try daemon.mapping(for: peer) {
                if changes != .never { daemon.writes.commit() }
                try getter(object, message)
            }
        }
    }

    /// Makes a property that says to each caller what that one may know.
    @BusActor
    static func property(
        _ name: String, _ type: String, changes: PropertyChanges, on daemon: Daemon,
        _ getter: @escaping @BusActor (Object, Message, Client) throws -> Void
    ) -> Self {
        .unguardedProperty(name, type, changes: changes) { object, message, peer in
            try daemon.mapping(for: peer) {
                if changes != .never { daemon.writes.commit() }
                try getter(object, message, daemon.clients.client(peer))
            }
        }
    }
}

extension Message {
    /// Appends the empty value of a property's type.
    fileprivate func append(emptyOf type: String) throws {
        switch type {
        case "s": try append("")
        case "as": try append(strings: [])
        case "u": try append(UInt32(0))
        case "t": try append(UInt64(0))
        default: throw BusError.failed("Sandboxed apps can't read this property.")
        }
    }
}

extension Daemon {
    /// Answers a call.
    ///
    /// - Parameters:
    ///   - committing: whether to commit staged writes first.
    ///   - handler: shared by all calls, so that a call allocates nothing here.
    fileprivate func answer<Object>(
        _ object: Object, _ call: MethodCall, committing: Bool,
        _ handler: @BusActor (Object, MethodCall) throws -> Void
    ) throws {
        if committing { writes.commit() }
        try mapping(for: call.peer) { try handler(object, call) }
    }

    /// Runs a part of an answer, with its errors mapped for the client.
    @inline(__always)
    fileprivate func mapping(for peer: Peer, _ body: () throws -> Void) throws {
        do { try body() } catch { throw BusError(mapping: error, for: clients.client(peer)) }
    }
}
