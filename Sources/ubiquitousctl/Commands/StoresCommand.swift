// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import PropertyList
internal import SDBus
internal import UbiquitousStore

/// `stores`.
struct StoresCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "stores",
        abstract: "Lists the stores that hold something, deletes one, or keeps one on this device.",
        subcommands: [StoresListCommand.self, StoresRemoveCommand.self, StoresSyncCommand.self],
        defaultSubcommand: StoresListCommand.self)
}

/// `stores list`.
struct StoresListCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "list", abstract: "Lists the stores that hold something.")

    @OptionGroup var service: ServiceOptions

    @Flag(help: "List the stores of every user, with the uid first; for root.")
    var everybody = false

    @Flag(help: "Print an array of JSON.")
    var json = false

    func validate() throws { try service.check(everybody: everybody) }

    func perform() async throws {
        let uid = try service.uid()
        let stores = try await Progress.showing("Waiting for the service") {
            try await service.connect().manager.stores(ofEverybody: everybody || service.user != nil)
        }.filter { everybody || $0.uid == uid }
        if json { return Output.print(json: .array(stores.map(\.json))) }
        for store in stores {
            let name = Output.printableWord(store.identifier)
            Output.print(everybody ? "\(store.uid)\t\(name)" : name)
        }
    }
}

/// `stores remove`.
struct StoresRemoveCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "remove",
        abstract: "Deletes a store and its history from this device.",
        discussion: """
            Pending changes are uploaded first. If the account has the store, this device downloads it again when an \
            app opens it. If the store holds nothing, nothing changes.
            """)

    @OptionGroup var service: ServiceOptions
    @OptionGroup var change: ChangeOptions

    @Flag(help: "Remove the store and its values on every device of the account.")
    var everywhere = false

    @Flag(help: "Also discard changes that have not been uploaded.")
    var discardChanges = false

    @Argument(help: "The store.", completion: .custom { arguments, _, _ in StoreCompletion.identifiers(arguments) })
    var identifier: String

    func perform() async throws {
        let uid = try service.uid()
        let connection = try await service.connectAsUser()
        let manager = connection.manager
        var account: AccountDescription?
        try await change.make("Removing") {
            let isThere = try await manager.stores().contains { $0.uid == uid && $0.identifier == identifier }
            guard isThere else {
                Output.remark("No store named \(Output.quoted(identifier)) holds anything here")
                return nil
            }
            if let failure = try await unsaved(connection, uid) { throw failure }
            if change.check { try await removal(manager, onlyChecking: true) }
            if everywhere { account = try await connection.account(ofUser: uid).properties() }
            return "remove \(identifier) from \(account?.isSignedIn == true ? "every device" : "this device")"
        } _: {
            do { try await removal(manager) } catch let error as UbiquitousStoreError
                where error.code == .conflict && keepsChanges
            {
                // A program may have set a value since the upload.
                if try await unsaved(connection, uid) != nil { throw error }
                try await removal(manager)
            }
            if let account, account.isSignedIn, account.lastError != nil || account.isPausedByUser {
                Output.remark("Other devices remove it once this one syncs again")
            }
        }
    }

    /// Whether changes that the account lacks prevent the removal.
    private var keepsChanges: Bool { !everywhere && !discardChanges }

    /// The error if the account lacks changes of this device that would be removed. It asks for those of all stores: one
    /// store's object would have to be in use.
    @BusActor
    private func unsaved(_ connection: ServiceConnection, _ uid: UInt32) async throws -> Failure? {
        guard keepsChanges else { return nil }
        return try await connection.account(ofUser: uid).unsaved(check: change.check)
    }

    @BusActor
    private func removal(_ manager: ManagerObject, onlyChecking isCheck: Bool = false) async throws {
        try await manager.removeStore(
            identifier, everywhere: everywhere, keepingPending: keepsChanges && !isCheck,
            discardingChanges: discardChanges, onlyChecking: isCheck)
    }
}

/// `stores sync`.
struct StoresSyncCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "sync",
        abstract: "Includes a store in sync, or keeps it on this device.",
        discussion: """
            Without on or off, prints which of them is set. Without a store, lists those that are kept on this device.
            """)

    enum Switch: String, CaseIterable, ExpressibleByArgument {
        case on, off
    }

    @OptionGroup var service: ServiceOptions
    @OptionGroup var change: ChangeOptions

    @Argument(help: "The store.", completion: .custom { arguments, _, _ in StoreCompletion.identifiers(arguments) })
    var identifier: String?

    @Argument(help: "on, or off: the store stays on this device.")
    var state: Switch?

    func perform() async throws {
        let connection = try await service.connect()
        guard let identifier else { return try await list(connection) }
        try await perform(identifier, connection)
    }

    /// Prints the stores that are kept on this device.
    @BusActor
    private func list(_ connection: ServiceConnection) async throws {
        let uid = try service.uid()
        let stores = try await Progress.showing("Waiting for the service") {
            try await connection.manager.stores(ofEverybody: service.user != nil, onlyExcluded: true)
        }.filter { $0.uid == uid }
        if change.json { return Output.print(json: .array(stores.map(\.json))) }
        for store in stores { Output.print(Output.printableWord(store.identifier)) }
    }

    @BusActor
    private func perform(_ identifier: String, _ connection: ServiceConnection) async throws {
        guard let state else {
            let present = try await Progress.showing("Waiting for the service") {
                try await self.state(of: identifier, connection)
            }
            if change.json { return Output.print(json: ["synchronized": .boolean(present == .on)]) }
            return Output.print(present.rawValue)
        }
        let account = connection.account(ofUser: try service.uid())
        try await change.make("Waiting for the service") {
            guard try await self.state(of: identifier, connection) != state else { return nil }
            return state == .on ? "sync \(identifier)" : "keep \(identifier) on this device"
        } _: {
            try await account.setSynchronized(identifier, state == .on)
        }
    }

    @BusActor
    private func state(of identifier: String, _ connection: ServiceConnection) async throws -> Switch {
        let uid = try service.uid()
        do {
            return try await connection.store(identifier, ofUser: uid).properties().isSynchronized ? .on : .off
        } catch let error as UbiquitousStoreError where error.code == .unknownObject {
            throw await StoreOptions.noStore(identifier, ofUser: uid, connection.manager)
        }
    }
}

extension ListedStore {
    fileprivate var json: Value {
        ["uid": .integer(Int64(uid)), "identifier": .string(Text(identifier)), "path": .string(Text(path))]
    }
}
