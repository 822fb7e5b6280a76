// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import SDBus
internal import UbiquitousStore

/// Where the service is.
struct BusOptions: ParsableArguments {
    @Option(
        help: "The bus: system, session, or an address (default: $UBIQUITOUS_STORE_BUS, or system).",
        completion: .list(["system", "session"]))
    var bus: String?

    private var name: String { bus ?? Variable.bus.value ?? "system" }

    func validate() throws {
        guard !["system", "session"].contains(name), !name.contains(":") else { return }
        throw ValidationError(
            localized(
                "The bus is system, session or an address, such as unix:path=/run/bus, and not \(Output.quoted(name)).")
        )
    }

    /// The bus that is meant.
    var address: BusAddress {
        switch name {
        case "system": .system
        case "session": .session
        case let address: .address(address)
        }
    }

    /// Connects to the service's bus.
    @BusActor
    func connect() async throws -> ServiceConnection {
        let connection = try await ServiceConnection.open(address, description: "ubiquitousctl")
        if case .session = address { return connection }
        ServiceUnit.watch(connection)
        ServiceUnit.current = connection.bus
        return connection
    }
}

/// Where the service is, and whose stores and account are meant.
struct ServiceOptions: ParsableArguments {
    @OptionGroup var bus: BusOptions

    @Option(
        help: ArgumentHelp("Another user, by name or number; for root.", valueName: "name-or-uid"),
        completion: .shellCommand("getent passwd | cut -d: -f1"))
    var user: String?

    /// Refuses a command line that names one user, and asks for all.
    func check(everybody: Bool) throws {
        guard everybody, user != nil else { return }
        throw ValidationError(localized("--everybody is for all users, and --user for one; leave one of them out."))
    }

    /// The user that is meant.
    /// - Throws: ``Failure`` if there is none of that name, or if it is another one and this isn't root.
    func uid() throws -> UInt32 {
        guard let user else { return geteuid() }
        guard let uid = UInt32(user) ?? LocalUser.uid(named: user) else {
            throw Failure(.usage, "There is no user \"\(user)\".", advice: "--user takes a name or a number.")
        }
        guard uid == geteuid() || geteuid() == 0 else {
            throw Failure(.refused, "Only root may act for user \"\(user)\".", advice: "Use sudo.")
        }
        return uid
    }

    /// Connects to the service's bus.
    @BusActor
    func connect() async throws -> ServiceConnection { try await bus.connect() }

    /// Connects to the service's bus as the user that is meant, for calls that are only for one's own.
    ///
    /// A user who has nothing on this device gets a place for it by that.
    @BusActor
    func connectAsUser() async throws -> ServiceConnection {
        let (own, uid) = (geteuid(), try uid())
        if uid == own { return try await connect() }
        guard LocalUser.name(of: uid) != nil else { throw Failure(.usage, "There is no user \(uid) on this machine.") }
        guard seteuid(uid) == 0 else {
            throw Failure(.refused, "Acting for user \(uid): \(String(cString: strerror(errno))).")
        }
        // The bus knows the connection's user from now on; files are read as who was asked to.
        defer { _ = seteuid(own) }
        return try await connect()
    }

    /// The account of the user that is meant.
    @BusActor
    func account() async throws -> AccountObject {
        let uid = try uid()
        return try await connect().account(ofUser: uid)
    }
}
