// SPDX-License-Identifier: Apache-2.0

// org.example.UbiquitousStore.Administration: the data of all users, for root.

internal import Files
internal import Glibc
internal import Logging
internal import PropertyList
internal import Replication
internal import SDBus
internal import StoreBus
internal import StoreEngine
internal import SyncEngine

extension Daemon {
    fileprivate func listData(_ call: MethodCall) throws {
        _ = try call.message.readFlags()
        call.answer(on: self) {
            try await self.files.result { [directory = self.configuration.stateDirectory] in
                try UserData.all(in: directory).map { ($0, $0.bytes) }
            }
        } reply: { reply, list in
            try reply.container("a", "a{sv}") {
                for (data, bytes) in list { try Self.append(data, bytes, to: reply) }
            }
        }
    }

    private static func append(_ data: UserData, _ bytes: UInt64, to reply: Message) throws {
        try reply.appendDictionary {
            try reply.append(entry: "name", text: data.name)
            try reply.container("e", "sv") {
                try reply.append("uid")
                try reply.container("v", "u") { try reply.append(data.uid) }
            }
            try reply.append(entry: "user", text: data.owner ?? "")
            try reply.append(entry: "set-aside", .boolean(data.isSetAside))
            try reply.append(entry: "copy", .boolean(data.isCopy))
            try reply.append(option: "set-aside-usec", data.time)
            try reply.append(option: "bytes", bytes)
        }
    }

    fileprivate func backUp(_ call: MethodCall) throws {
        _ = try call.message.readFlags()
        writes.commit()
        let (directory, time) = (configuration.stateDirectory, environment.time())
        call.answer(on: self) {
            try await self.files.result { try DataBackup.make(in: directory, time: time) }
        } reply: {
            try $0.append($1)
        }
    }

    fileprivate func adopt(_ call: MethodCall) throws {
        let (name, uid) = (try call.message.readString(atMost: TextBound.name), try call.message.readUInt32())
        let flags = try call.message.readFlags(0x3)
        let (replaces, isCheck) = (flags & 0x1 != 0, flags & 0x2 != 0)
        if isCheck, !replaces { try checkIsFree(UserDirectory(of: uid, in: configuration.stateDirectory)) }
        if isCheck, name.isEmpty { return try call.reply() }
        let data = try UserData.named(name, in: configuration.stateDirectory)
        call.answer(on: self) {
            var data = data
            if !data.isSetAside {
                try await self.checkIsLeft(data)
                if isCheck { return }
                // Otherwise, a refusal would leave the data set aside.
                if !replaces { try self.checkIsFree(UserDirectory(of: uid, in: self.configuration.stateDirectory)) }
                data = try self.setAside(data)
            }
            try await self.checkDatabase(of: data)
            if !isCheck { try await self.adopt(data, by: uid, replacing: replaces) }
        }
    }

    /// Sets data aside that is in use under a uid that no user has. Its database may be open.
    private func setAside(_ data: UserData) throws -> UserData {
        let stateDirectory = configuration.stateDirectory
        closeData(of: data.uid)
        let path = try UserDirectory(of: data.uid, in: stateDirectory)
            .setAside(as: data.owner ?? "unknown", time: environment.time())
        let aside = try UserData.named(String(path.dropFirst(stateDirectory.count + 1)), in: stateDirectory)
        logger.notice("The data \(data.name) was set aside as \(aside.name).")
        return aside
    }

    /// Refuses data in use, unless nobody can use it where it is: no user has its uid, or a user of another name has it
    /// now.
    private func checkIsLeft(_ data: UserData) async throws {
        let owner = await files.result { RecordedOwner(of: data.uid, recorded: data.owner, lookUp: UserEntry.lookUp) }
        switch owner {
        case .nameless, .former: return
        case .user, .perhapsUser, .perhapsFormer:
            throw BusError.invalidArguments(
                "\(data.name) isn't set aside, and is or may be the data of a user of this machine.")
        }
    }

    /// Only the renames run on the bus's thread, on which no call can open the data in between.
    private func adopt(_ data: UserData, by uid: UInt32, replacing replaces: Bool) async throws {
        let user = UserDirectory(of: uid, in: configuration.stateDirectory)
        if !replaces { try checkIsFree(user) }
        try await salvage(data)
        try await files.result { try user.mark(data) }
        // The user's programs may have written meanwhile.
        if !replaces { try checkIsFree(user) }
        // A damaged database doesn't say, and then the clock is what is left to tell the data apart.
        let known = user.exists ? (try? users.user(uid).database.greatestGeneration()) ?? 0 : 0
        closeData(of: uid)
        try user.adopt(data, time: environment.time()) {
            do { try users.user(uid).database.raiseGenerations(above: known) } catch {
                closeData(of: uid)
                throw error
            }
        }
        logger.notice("The data \(data.name) is \(UserName.text(of: uid))'s now.")
        try await files.result { try user.settle() }
    }

    /// Refuses data of an archive whose database would do harm here. Only what is checked is used later.
    private func checkDatabase(of data: UserData) async throws {
        let largest = 2 * configuration.bounds.largestDatabase
        try await files.result {
            let database = ClosedDatabase(in: data.path)
            try database.prepareForeign()
            let size = database.size
            guard size <= largest else {
                throw BusError.invalidArguments(
                    "\(data.name) has a database of \(size) bytes, which is more than DatabaseBytes= allows.")
            }
            guard try database.isOwn() else {
                throw BusError.invalidArguments("\(data.name) has a database that this service has not made.")
            }
        }
    }

    /// Replaces the database of data that is to be adopted, if it is damaged. Reading it later, on the bus's thread,
    /// might not end. For the same reason, refuses one that has more than the service writes.
    private func salvage(_ data: UserData) async throws {
        let (time, logger) = (environment.time(), logger)
        try await files.result {
            let database = ClosedDatabase(in: data.path)
            let damage = try database.damage()
            let excess: String?
            do { excess = try database.excess() } catch {
                // What is damaged may not be readable to its end.
                if damage == nil { throw error }
                excess = nil
            }
            if let excess {
                throw BusError.invalidArguments(
                    "\(data.name) has a database with more in the table \(excess) than this service writes.")
            }
            guard let reason = damage else { return }
            logger.error("The database in \(data.path) is damaged (\(reason)).")
            try UserRecovery.setAside(in: data.path, at: time, logger)
        }
    }

    private func checkIsFree(_ user: UserDirectory) throws {
        guard user.exists else { return }
        let present = try users.user(user.uid)
        let isFree =
            try present.storesWithValues().isEmpty && present.domains.names().isEmpty && present.registered.count == 0
        guard isFree, !present.account.sync.isSignedIn else {
            throw BusError.store(
                .conflict, "The user \(user.uid) has data already. With 0x1, that is set aside.")
        }
    }

    fileprivate func delete(_ call: MethodCall) throws {
        let name = try call.message.readString(atMost: TextBound.name)
        let isForced = try call.message.readFlags(0x1) != 0
        if let backup = DataBackup.path(of: name, in: configuration.stateDirectory) {
            return call.answer(on: self) { try await self.files.result { try RemovedData.remove(backup) } }
        }
        let data = try UserData.named(name, in: configuration.stateDirectory)
        call.answer(on: self) { try await self.delete(data, isForced: isForced) }
    }

    private func delete(_ data: UserData, isForced: Bool) async throws {
        if !data.isSetAside {
            let isUsers = await files.result { UserEntry.lookUp(.uid(data.uid)) != .nobody }
            guard isForced || !isUsers else {
                throw BusError.store(
                    .conflict,
                    "\(data.name) is the data of a user of this machine; with 0x1 it is removed anyway.")
            }
            closeData(of: data.uid)
        }
        let place: String
        do throws(PrivateFile.Failure) {
            place = try RemovedData.take(data.path, in: configuration.stateDirectory, time: environment.time())
        } catch {
            // Another call may have removed it meanwhile.
            if error.code == ENOENT { throw UserData.absent(data.name) }
            throw error
        }
        logger.notice("The data \(data.name) was removed.")
        try await files.result { try RemovedData.remove(place) }
    }

    /// Closes a user's data. The next call opens what is then in the directory.
    private func closeData(of uid: UInt32) {
        if let user = users.all.first(where: { $0.uid == uid }) { clients.leave(user) }
    }

    // MARK: The table

    /// Every method and property of the interface, in the order of its XML.
    static func administration(_ daemon: Daemon) -> Interface<Daemon> {
        Interface(
            BusNames.administrationInterface,
            [
                .method("ListData", in: ["flags": "t"], out: ["data": "aa{sv}"], by: .administrators, on: daemon) {
                    try $0.listData($1)
                },
                .method("BackUp", in: ["flags": "t"], out: ["directory": "s"], by: .administrators, on: daemon) {
                    try $0.backUp($1)
                },
                .method("Adopt", in: ["name": "s", "uid": "u", "flags": "t"], by: .administrators, on: daemon) {
                    try $0.adopt($1)
                },
                .method("Delete", in: ["name": "s", "flags": "t"], by: .administrators, on: daemon) {
                    try $0.delete($1)
                },
                .property("StateDirectory", "s", changes: .never, to: .administrators, on: daemon) { daemon, message in
                    try message.append(text: daemon.configuration.stateDirectory)
                },
            ])
    }
}
