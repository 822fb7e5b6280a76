// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import UbiquitousStore

/// The options that name the service's bus.
struct BusOptions: ParsableArguments {
    @Option(
        help: "The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).",
        completion: .list(["system", "session"]))
    var bus: String?

    /// Whether it is the bus that the user's programs use here, too.
    var isProgramsBus: Bool { bus == nil || bus == Variable.bus.value ?? "system" }

    private var name: String { bus ?? Variable.bus.value ?? "system" }

    func validate() throws {
        if BusAddress.isNamed(by: name) { return }
        throw ValidationError(
            localized(
                "The bus is system, session or an address, such as unix:path=/run/bus, and not \(Output.quoted(name)).")
        )
    }

    /// The address of the bus.
    var address: BusAddress { BusAddress(name) }

    /// Connects to the service's bus.
    @BusActor
    func connect() async throws -> ServiceConnection {
        let connection = try await ServiceConnection.open(address, description: "ubiquitousctl")
        Failure.connection = connection
        // The session's systemd doesn't know the unit.
        if case .session = address { return connection }
        ServiceUnit.watch(connection)
        return connection
    }
}

/// The options that name the service's bus, and the user whose stores and account are meant.
struct ServiceOptions: ParsableArguments {
    @OptionGroup var bus: BusOptions

    @Option(
        help: ArgumentHelp("Act for another user, given by name or uid; for root.", valueName: "name-or-uid"),
        completion: .shellCommand("getent passwd | cut -d: -f1"))
    var user: String?

    /// Refuses a command line with both `--everybody` and `--user`.
    func check(everybody: Bool) throws {
        guard everybody, user != nil else { return }
        throw ValidationError(localized("--everybody is for all users, and --user for one; leave one of them out."))
    }

    /// Returns the uid of the user that is meant.
    /// - Throws: ``Failure`` if there is no such user, or if it is another user and the caller isn't root.
    func uid() throws -> UInt32 {
        guard let user else { return geteuid() }
        guard let uid = LocalUser.uid(inDigits: user) ?? LocalUser.uid(named: user) else {
            throw Self.noUser(user)
        }
        guard uid == geteuid() || geteuid() == 0 else {
            throw Failure(.refused, "Only root may act for user \"\(user)\".", advice: "Use sudo.")
        }
        return uid
    }

    private static func noUser(_ user: String) -> Failure {
        Failure(
            .usage, "There is no user \(Output.quoted(user)) on this machine.", advice: "--user takes a name or a uid.")
    }

    /// Connects to the service's bus. If no user has the uid that is meant, there must be data of it.
    @BusActor
    func connect() async throws -> ServiceConnection {
        let connection = try await bus.connect()
        let uid = try self.uid()
        guard uid != geteuid(), LocalUser.name(of: uid) == nil else { return connection }
        guard try await connection.manager.users().contains(uid) else { throw Self.noUser("\(uid)") }
        return connection
    }

    /// Connects to the service's bus as the user that is meant, for calls that are limited to the user's own data.
    ///
    /// If the user has no data on this device yet, the service makes a place for it.
    @BusActor
    func connectAsUser() async throws -> ServiceConnection {
        let (own, uid) = (geteuid(), try uid())
        if uid == own { return try await connect() }
        guard LocalUser.name(of: uid) != nil else { throw Self.noUser("\(uid)") }
        guard seteuid(uid) == 0 else {
            throw Failure(.refused, "Acting for user \(uid): \(String(cString: strerror(errno))).")
        }
        // The bus now knows the connection as this user's. Files are read as the calling user.
        defer { _ = seteuid(own) }
        return try await connect()
    }

    /// Returns the account of the user that is meant.
    @BusActor
    func account() async throws -> AccountObject {
        let uid = try uid()
        return try await connect().account(ofUser: uid)
    }
}
