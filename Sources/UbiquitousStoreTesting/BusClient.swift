// SPDX-License-Identifier: Apache-2.0

internal import Glibc
public import PropertyList
public import SDBus
internal import StoreBus

/// A client program, with its own connection to a private bus.
@BusActor
public final class BusClient {
    /// The connection.
    public let connection: BusConnection
    /// The client's user id, as the bus sees it.
    public let uid: UInt32

    /// Connects to a bus.
    ///
    /// - Parameter user: the user to connect as; only root may choose another.
    /// - Throws: `BusError`.
    public init(_ bus: PrivateBus, as user: UInt32? = nil) throws {
        uid = user ?? geteuid()
        connection = try ThreadUser.become(user) {
            try BusConnection.open(bus.busAddress, description: "test")
        }
    }

    /// Connects to a bus by its address, as this process's user.
    ///
    /// - Throws: `BusError`.
    public init(address: String) throws {
        uid = geteuid()
        connection = try BusConnection.open(.address(address), description: "test")
    }

    /// Returns a store of the client's user.
    /// - Throws: `BusError` if the identifier contains U+0000.
    public func store(_ identifier: String) throws -> StoreClient {
        StoreClient(self, path: try BusNames.storePath(uid: uid, identifier: identifier))
    }

    /// The account of the client's user.
    public var account: AccountClient { AccountClient(self, path: BusNames.accountPath(uid: uid)) }

    // MARK: Calling

    /// Calls a method of the service. All other members that call it throw the same.
    /// - Throws: `BusError`: the service's, or one if there is no service or no answer within two minutes.
    public func call<Result: Sendable>(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ build: @BusActor (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await connection.call(
            BusNames.service,
            path,
            interface,
            member,
            timeout: .seconds(120),
            build: build,
            decode: decode
        )
    }

    /// Calls a method of the service, waits for the reply, and ignores its contents.
    public func call(
        _ path: String,
        _ interface: String,
        _ member: String,
        _ build: @BusActor (Message) throws -> Void = { _ in }
    ) async throws {
        try await call(path, interface, member, build) { _ in }
    }

    /// Calls a method of the service's own object.
    public func manager<Result: Sendable>(
        _ member: String,
        _ build: @BusActor (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        try await call(BusNames.managerPath, BusNames.managerInterface, member, build, decode: decode)
    }

    /// Calls a method of the service's own object.
    public func manager(_ member: String, _ build: @BusActor (Message) throws -> Void = { _ in }) async throws {
        try await manager(member, build) { _ in }
    }

    /// Returns a property of an object of the service.
    public func property(_ path: String, _ interface: String, _ name: String) async throws -> Value {
        try await call(path, "org.freedesktop.DBus.Properties", "Get") {
            try $0.append(interface)
            try $0.append(name)
        } decode: {
            try $0.readValue()
        }
    }

    /// Returns all properties of an object of the service.
    public func properties(_ path: String, _ interface: String) async throws -> [String: Value] {
        try await call(path, "org.freedesktop.DBus.Properties", "GetAll") {
            try $0.append(interface)
        } decode: {
            try $0.readDictionary()
        }
    }

    /// Returns the introspection of an object of the service.
    public func introspect(_ path: String) async throws -> String {
        try await call(path, "org.freedesktop.DBus.Introspectable", "Introspect") { try $0.readString() }
    }

    /// Returns the unique name that owns the service's name; `nil` if there is no owner.
    public func serviceOwner() async throws -> String? {
        let name = "org.freedesktop.DBus"
        do {
            return try await connection.call(
                name,
                "/org/freedesktop/DBus",
                name,
                "GetNameOwner",
                build: { try $0.append(BusNames.service) },
                decode: { try $0.readString() }
            )
        } catch let error as BusError where error.name.hasSuffix("NameHasNoOwner") {
            return nil
        }
    }
}

/// Switches the user of a thread.
enum ThreadUser {
    /// Runs `body` on this thread as a user. The kernel records a socket's peer when it connects.
    ///
    /// It uses the system call, which affects one thread; the C library's function of that name affects all.
    static func become<Result>(_ user: UInt32?, _ body: () throws -> Result) throws -> Result {
        guard let user, user != geteuid() else { return try body() }
        guard setEffective(user) else {
            throw BusError.accessDenied("Only root can connect as another user")
        }
        defer { precondition(setEffective(0), "the thread can't be root again") }
        return try body()
    }

    #if arch(x86_64)
        private static let setresuidNumber = 117
    #elseif arch(arm64)
        private static let setresuidNumber = 147
    #endif

    private typealias Call = @convention(c) (Int, Int, Int, Int) -> Int

    private static func setEffective(_ user: UInt32) -> Bool {
        // Swift doesn't import variadic functions.
        guard let function = dlsym(nil, "syscall") else { return false }
        return unsafeBitCast(function, to: Call.self)(setresuidNumber, -1, Int(user), -1) == 0
    }
}
