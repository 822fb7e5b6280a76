// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// The object at a path, for a caller.
package enum Located<Object: AnyObject> {
    /// The object is loaded.
    case object(Object)
    /// The object is loaded once a member is called or read. Introspection loads nothing.
    case unloaded(_ load: @BusActor () throws -> Object)

    /// Returns the object, and loads it if necessary.
    /// - Throws: what `load` throws, which the caller gets as the answer.
    @BusActor
    package func loaded() throws -> Object {
        switch self {
        case .object(let object): object
        case .unloaded(let load): try load()
        }
    }
}

/// An interface on a connection. It leads from libsystemd's callbacks to the handlers of the table.
///
/// For each message, libsystemd asks for the object and, if there is one, then calls the handler of one member, or the
/// getters of several. In between, ``Found`` remembers the object. A blocking call during the search for the object
/// does no harm: libsystemd dispatches nothing meanwhile, and the object is stored after the search.
@BusActor
final class Registration {
    let connection: BusConnection
    private let found: any Forgetting
    private let find: @BusActor (_ path: String, Peer) throws -> Bool
    /// The interface's name.
    let interface: String
    private let scope: Scope
    private var members: [RegisteredMember] = []
    private var lastPath = LastString()
    /// Calls keep it too, because libsystemd has a pointer to the answer's signature in their messages.
    fileprivate private(set) var table: VTable?

    /// The paths at which the interface is registered.
    enum Scope {
        case at(String)
        case under(String)

        func contains(_ path: String) -> Bool {
            switch self {
            case .at(let object): path == object
            case .under(let prefix): path == prefix || path.hasPrefix(prefix + "/")
            }
        }
    }

    /// Makes an interface whose object depends on path and caller.
    convenience init<Object>(
        _ interface: Interface<Object>,
        under prefix: String,
        on connection: BusConnection,
        find: @escaping @BusActor (_ path: String, Peer) throws -> Located<Object>?
    ) {
        let found = Found<Object>()
        self.init(interface, .under(prefix), on: connection, found: found) { path, peer in
            found.located = try find(path, peer)
            return found.located != nil
        }
    }

    /// Makes an interface of one object.
    convenience init<Object>(
        _ interface: Interface<Object>,
        at path: String,
        on connection: BusConnection,
        object: Object
    ) {
        let found = Found<Object>(isKept: true)
        found.located = .object(object)
        self.init(interface, .at(path), on: connection, found: found) { _, _ in true }
    }

    private init<Object>(
        _ interface: Interface<Object>,
        _ scope: Scope,
        on connection: BusConnection,
        found: Found<Object>,
        find: @escaping @BusActor (_ path: String, Peer) throws -> Bool
    ) {
        self.connection = connection
        self.found = found
        self.find = find
        self.interface = interface.name
        self.scope = scope
        members = interface.members.map { RegisteredMember($0, of: self, found) }
        table = VTable(interface, targets: members)
        connection.objects.insert(self)
    }

    isolated deinit {
        connection.objects.remove(self)
    }

    /// The table for libsystemd, which lives as long as this object.
    var vtable: UnsafePointer<sd_bus_vtable>? {
        UnsafePointer(table?.entries.baseAddress)
    }

    /// Releases the object that was found for one message.
    func forgetObject() {
        found.forget()
    }

    /// Dispatches a method call as libsystemd would, but later.
    ///
    /// - Returns: false if the call isn't one of this interface's methods.
    func dispatch(_ message: Message, from peer: Peer) -> Bool {
        guard message.interface == interface, let path = message.path, scope.contains(path),
            let member = members.first(where: { $0.name == message.member }), let signature = member.signature
        else { return false }
        defer { forgetObject() }
        do {
            guard try find(path, peer) else { throw BusError.unknownObject }
            guard message.signature == signature else {
                throw BusError.invalidArguments("The arguments are not of the types \(signature).")
            }
            try message.rewind()
            member.handle(message, from: peer)
        } catch {
            try? message.sendError(BusError(error), weighedFor: peer, on: connection)
        }
        return true
    }

    /// Returns whether the interface has an object at a path. The object is remembered until ``forgetObject()``.
    func finds(_ path: String, for peer: Peer) throws -> Bool {
        try scope.contains(path) && find(path, peer)
    }

    /// Appends the value of a property of the object that was found, in a variant.
    /// - Returns: false if there is no such property.
    func append(property name: String, to reply: Message, for peer: Peer) throws -> Bool {
        guard let member = members.first(where: { $0.name == name }), let type = member.propertyType else {
            return false
        }
        try reply.container("v", type) { try member.append(to: reply, for: peer) }
        return true
    }

    /// Appends a dictionary entry for each property of the object that was found.
    func appendProperties(to reply: Message, for peer: Peer) throws {
        for member in members where member.propertyType != nil {
            try reply.container("e", "sv") {
                try reply.append(member.name)
                _ = try append(property: member.name, to: reply, for: peer)
            }
        }
    }

    /// Finds the object of the message being dispatched. Returns false if there is none.
    fileprivate func findObject(_ path: UnsafePointer<CChar>) throws -> Bool {
        // An unknown caller gets this answer on every path, whether there is an object or not.
        guard let peer = connection.peers.current() else { throw BusError.accessDenied }
        connection.dispatcher.lookup = self
        return try find(lastPath.string(path), peer)
    }
}

/// The object of the message being dispatched.
@BusActor
private final class Found<Object: AnyObject>: Forgetting {
    var located: Located<Object>?
    /// Whether this is the registration's one object.
    private let isKept: Bool

    nonisolated init(isKept: Bool = false) { self.isKept = isKept }

    func forget() {
        if !isKept { located = nil }
    }

    /// Returns the object, which is loaded once for all members of a message.
    func object() throws -> Object {
        switch located {
        case .object(let object): return object
        case .unloaded(let load):
            let object = try load()
            located = .object(object)
            return object
        case nil: throw BusError.unknownObject
        }
    }
}

/// A ``Found`` of any type of object.
@BusActor
private protocol Forgetting: AnyObject {
    func forget()
}

/// A member of a registered interface: the target of its entry's userdata.
@BusActor
private final class RegisteredMember {
    private unowned(unsafe) let registration: Registration
    // unsafe is safe because the registration owns this object, and a slot owns that while callbacks come.
    private let kind: Kind
    let name: String
    /// The types of a method's arguments; `nil` if it isn't a method.
    let signature: String?
    /// The type of a property; `nil` if it isn't a property.
    let propertyType: String?

    private enum Kind {
        case method(@BusActor (MethodCall) throws -> Void)
        case property(@BusActor (Message, Peer) throws -> Void)
        case signal
    }

    init<Object>(_ member: Interface<Object>.Member, of registration: Registration, _ found: Found<Object>) {
        self.registration = registration
        name = member.name
        switch member.kind {
        case .method(let arguments, _, _, let handler):
            (signature, propertyType) = (arguments.map(\.signature).joined(), nil)
            kind = .method { call in
                try handler(try found.object(), call)
            }
        case .property(let type, _, let getter):
            (signature, propertyType) = (nil, type)
            kind = .property { message, peer in
                try getter(try found.object(), message, peer)
            }
        case .signal:
            (signature, propertyType) = (nil, nil)
            kind = .signal
        }
    }

    func handle(_ message: Message) {
        guard let peer = registration.connection.peers.peer(of: message.message) else {
            try? message.sendError(.accessDenied, weighedFor: nil, on: registration.connection)
            return
        }
        handle(message, from: peer)
    }

    func handle(_ message: Message, from peer: Peer) {
        guard case .method(let handler) = kind else { return }
        let call = MethodCall(message, peer: peer, on: registration.connection, table: registration.table)
        do {
            try handler(call)
        } catch {
            call.fail(BusError(error))
        }
    }

    func get(_ reply: Message) throws {
        guard let peer = registration.connection.peers.current() else { throw BusError.accessDenied }
        try append(to: reply, for: peer)
        registration.connection.weigh(reply.size, for: peer)
    }

    func append(to reply: Message, for peer: Peer) throws {
        guard case .property(let getter) = kind else { return }
        try getter(reply, peer)
    }
}

// MARK: Callbacks of libsystemd

/// sd_bus_message_handler_t of every method.
func handleMethod(
    _ message: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    receiving(message, userdata, as: RegisteredMember.self) { member, call in member.handle(call) }
    // 1: the answer is ours to send, now or later.
    return 1
}

/// sd_bus_property_get_t of every property.
func getProperty(
    _ bus: OpaquePointer?,
    _ path: UnsafePointer<CChar>?,
    _ interface: UnsafePointer<CChar>?,
    _ property: UnsafePointer<CChar>?,
    _ reply: OpaquePointer?,
    _ userdata: UnsafeMutableRawPointer?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    BusActor.assumeIsolated(lending: (reply, userdata, error)) { lent in
        guard case (let reply?, let userdata?, let error) = lent else { return -EINVAL }
        return answering(error) {
            try Unmanaged<RegisteredMember>.fromOpaque(userdata).takeUnretainedValue().get(Message(retaining: reply))
            return 1
        }
    }
}

/// sd_bus_object_find_t of every registration.
func findObject(
    _ bus: OpaquePointer?,
    _ path: UnsafePointer<CChar>?,
    _ interface: UnsafePointer<CChar>?,
    _ userdata: UnsafeMutableRawPointer?,
    _ found: UnsafeMutablePointer<UnsafeMutableRawPointer?>?,
    _ error: UnsafeMutablePointer<sd_bus_error>?
) -> Int32 {
    BusActor.assumeIsolated(lending: (path, userdata, found, error), find)
}

@BusActor
private func find(
    _ lent: (
        path: UnsafePointer<CChar>?, userdata: UnsafeMutableRawPointer?,
        found: UnsafeMutablePointer<UnsafeMutableRawPointer?>?, error: UnsafeMutablePointer<sd_bus_error>?
    )
) -> Int32 {
    guard case (let path?, let userdata?, let found?, let error) = lent else { return -EINVAL }
    found.pointee = userdata
    do {
        return try Unmanaged<Registration>.fromOpaque(userdata).takeUnretainedValue().findObject(path) ? 1 : 0
    } catch let thrown {
        return BusError(thrown).set(error)
    }
}

/// Makes libsystemd answer with the error that `body` throws.
@BusActor
func answering(_ error: UnsafeMutablePointer<sd_bus_error>?, _ body: () throws -> Int32) -> Int32 {
    do {
        return try body()
    } catch let thrown {
        return BusError(thrown).set(error)
    }
}
