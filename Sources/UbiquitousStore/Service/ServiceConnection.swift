// SPDX-License-Identifier: Apache-2.0

// The connection to the service: calls with the types of this library, and the signals of the owner of its name.
//
// It is in this library, not in a layer below, because it throws the library's errors. It is `package` so that the
// command line uses it too, and nothing else.
//
// Signals: the bus delivers a signal that is addressed to us whatever match rules we have. libsystemd compares a rule's
// `sender` with the message's, and accepts any sender if the rule names a well-known name. So any client of the bus
// could forge changes. This class therefore tracks the owner of the service's name, accepts signals only from it, and
// believes only the bus itself about who the owner is.

internal import Glibc
internal import PlainText
package import PropertyList
package import SDBus
internal import StoreBus

/// A connection to the bus that the service is on.
///
/// The service need not be running: a call starts it if the bus can activate it, and fails otherwise.
@BusActor
package final class ServiceConnection {
    /// The connection.
    package let bus: BusConnection
    /// The unique name that owns the service's name; `nil` if there is no owner, or it isn't known yet.
    package private(set) var owner: String?
    /// Called with the former owner when the service has started, ended or been replaced; not for the first one found.
    package var onOwnerChange: (@BusActor (_ former: String?) -> Void)?

    private var ownerMatch: Slot?

    private init(_ bus: BusConnection) {
        self.bus = bus
    }

    // Any thread may release the last reference, but the match has to be released on the loop's thread.
    isolated deinit {}

    /// Connects to a bus and looks up the owner of the service's name.
    ///
    /// - Throws: ``UbiquitousStoreError`` with `serviceUnavailable` if there is no bus.
    package static func open(_ address: BusAddress, description: String) async throws -> ServiceConnection {
        do {
            let connection = ServiceConnection(try BusConnection.open(address, description: description))
            try await connection.followOwner()
            return connection
        } catch {
            let reason = ((error as? BusError)?.message ?? "\(error)").clause
            throw UbiquitousStoreError(.serviceUnavailable, "The bus can't be reached: \(reason).", cause: error)
        }
    }

    /// Whether it can still be used. Once the bus is gone, it can't be used again.
    package var isOpen: Bool { bus.isOpen }

    /// Sets what to do when the bus is gone.
    package func onDisconnect(_ action: @escaping @BusActor () -> Void) {
        bus.onDisconnect = action
    }

    /// Closes the connection; calls in flight fail.
    package func close() {
        ownerMatch = nil
        bus.close()
    }

    /// Returns the user whose process owns the service's name, as the bus knows it.
    package func serviceUser() async throws -> UInt32 {
        let name = "org.freedesktop.DBus"
        return try await bus.call(name, "/org/freedesktop/DBus", name, "GetConnectionUnixUser") {
            try $0.append(BusNames.service)
        } decode: {
            try $0.readUInt32()
        }
    }

    // MARK: Objects

    /// The service itself.
    package var manager: ManagerObject { ManagerObject(connection: self) }

    /// Returns a user's account.
    ///
    /// - Parameter uid: the user; `nil` is the caller. Only root may name another.
    package func account(ofUser uid: UInt32? = nil) -> AccountObject {
        AccountObject(connection: self, path: BusNames.accountPath(uid: uid ?? geteuid()))
    }

    /// Returns an app's store.
    ///
    /// - Parameters:
    ///   - identifier: as a manifest declares it.
    ///   - uid: the user; `nil` is the caller. Only root may name another.
    /// - Throws: ``UbiquitousStoreError`` if the identifier is invalid.
    package func store(_ identifier: String, ofUser uid: UInt32? = nil) throws -> StoreObject {
        do {
            let path = try BusNames.storePath(uid: uid ?? geteuid(), identifier: identifier)
            return StoreObject(connection: self, path: path)
        } catch {
            throw UbiquitousStoreError.mapping(error)
        }
    }

    // MARK: Calling

    /// Calls a method of an object of the service.
    ///
    /// - Parameter timeout: libsystemd's 25 s if `nil`.
    /// - Throws: ``UbiquitousStoreError``, or `CancellationError` if the task is cancelled.
    package func call<Result: Sendable>(
        _ path: String,
        _ interface: String,
        _ member: String,
        timeout: Duration? = nil,
        build: (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> Result
    ) async throws -> Result {
        do {
            return try await bus.call(
                BusNames.service, path, interface, member, timeout: timeout, build: build, decode: decode)
        } catch {
            throw UbiquitousStoreError.mapping(error)
        }
    }

    /// Returns all properties of an interface of an object of the service.
    package func properties(_ path: String, _ interface: String) async throws -> [String: Value] {
        try await call(path, "org.freedesktop.DBus.Properties", "GetAll") {
            try $0.append(interface)
        } decode: {
            try $0.readDictionary()
        }
    }

    // MARK: Signals

    /// Calls `handler` with each signal of the service from an object path, as long as the slot is held.
    func onSignal(
        _ path: String, _ interface: String, _ member: String, _ handler: @escaping @BusActor (Message) -> Void
    ) async throws -> Slot {
        let rule = """
            type='signal',sender='\(BusNames.service)',path='\(path)',interface='\(interface)',member='\(member)'
            """
        do {
            return try await bus.addMatch(rule) { [weak self] signal in
                guard let owner = self?.owner, signal.sender == owner else { return }
                handler(signal)
            }
        } catch {
            throw UbiquitousStoreError.mapping(error)
        }
    }

    // MARK: The owner of the service's name

    private static let busName = "org.freedesktop.DBus"

    private func followOwner() async throws {
        let rule = """
            type='signal',sender='\(Self.busName)',interface='\(Self.busName)',member='NameOwnerChanged',\
            arg0='\(BusNames.service)'
            """
        ownerMatch = try await bus.addMatch(rule) { [weak self] in try? self?.ownerChanged($0) }
        // Set where the reply is handled, since a signal that comes after it may be handled before this task goes on.
        do {
            try await bus.call(
                Self.busName, "/org/freedesktop/DBus", Self.busName, "GetNameOwner",
                build: { try $0.append(BusNames.service) }, decode: { [weak self] in self?.owner = try $0.readString() }
            )
        } catch let error as BusError where error.name.hasSuffix(".NameHasNoOwner") {}
    }

    private func ownerChanged(_ signal: Message) throws {
        guard try signal.readString() == BusNames.service else { return }
        _ = try signal.readString()
        let name = try signal.readString()
        let newOwner = name.isEmpty ? nil : name
        guard newOwner != owner else { return }
        let former = owner
        owner = newOwner
        onOwnerChange?(former)
    }
}
