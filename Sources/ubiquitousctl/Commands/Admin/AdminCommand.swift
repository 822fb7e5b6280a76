// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import PropertyList
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `admin`.
struct AdminCommand: ParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "admin",
        abstract: "Backs up, restores, moves and deletes users' data; for root.",
        subcommands: [
            BackUpCommand.self, RestoreDataCommand.self, ListDataCommand.self, AdoptCommand.self,
            DeleteDataCommand.self,
        ])
}

/// `admin list`.
struct ListDataCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "list",
        abstract: "Lists the data of all users, in use and set aside.",
        discussion: """
            The service sets data aside if its uid now belongs to a user of another name, for example after a user was \
            renamed. "admin adopt" gives it back. If no user has the uid of data in use, for example after a user's uid \
            was changed, the list says so.
            """)

    @OptionGroup var bus: BusOptions

    @Flag(help: "Print an array of JSON.")
    var json = false

    func perform() async throws {
        let data = try await Progress.showing("Waiting for the service") {
            try await AdministrationObject(try await bus.connect()).data()
        }
        if json { return Output.print(json: .array(data.map(\.json))) }
        if data.isEmpty { return Output.remark("Nobody has data on this machine") }
        let style = Style(for: STDOUT_FILENO)
        for data in data {
            var words = [data.user.isEmpty ? "?" : Output.printableWord(data.user), SizeText.text(data.bytes)]
            if data.isSetAside { words.append(style.yellow("set aside \(TimeText.local(data.time))")) }
            if let obstacle = data.obstacle { words.append(style.yellow(obstacle)) }
            Output.print(lines: [style.bold(Output.printableWord(data.name))] + words)
        }
    }
}

extension UserDataDescription {
    fileprivate var json: Value {
        var object: [Text: Value] = [
            "name": .string(Text(name)), "uid": .integer(Int64(uid)), "user": .string(Text(user)),
            "set-aside": .boolean(isSetAside), "copy": .boolean(isCopy), "bytes": .integer(Int64(bytes)),
            "usable": .boolean(!isSetAside && obstacle == nil),
        ]
        object["when"] = TimeText.value(time)
        return .dictionary(object)
    }
}

extension UserDataDescription {
    /// Why nobody can use the data, though it isn't set aside; `nil` if somebody can, or if it is set aside.
    var obstacle: String? {
        if isSetAside { return nil }
        let present = user.isEmpty ? nil : LocalUser.uid(named: user)
        guard let name = LocalUser.name(of: uid) else {
            return "no user has this uid" + (present.map { "; \(Output.printableWord(user)) has \($0)" } ?? "")
        }
        return user.isEmpty || name == user || present == uid ? nil : "this uid is \(Output.printableWord(name))'s now"
    }
}

/// `admin adopt`.
struct AdoptCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "adopt",
        abstract: "Gives data that was set aside to a user.",
        discussion: """
            It also gives a user the data in use of a uid that no user has, for example because the user's uid was \
            changed. Restart the service ("systemctl restart ubiquitous-store") so that the user's open programs show \
            the data.
            """)

    @OptionGroup var bus: BusOptions
    @OptionGroup var change: ChangeOptions

    @Flag(help: "Replace the values or the account that the user already has; they are set aside.")
    var replace = false

    @Argument(
        help: "The data, as \"admin list\" names it.",
        completion: .custom { arguments, _, _ in StoreCompletion.data(arguments, isSetAside: true) })
    var name: String

    @Argument(help: "The user, by name or uid.", completion: .shellCommand("getent passwd | cut -d: -f1"))
    var user: String

    func perform() async throws {
        let uid = try LocalUser.uid(of: user)
        let object = AdministrationObject(try await bus.connect())
        var names: Set<String> = []
        try await change.make("Adopting data") {
            let present = try await object.data()
            names = Set(present.map(\.name))
            guard let data = present.first(where: { $0.name == name }) else {
                throw Failure(
                    .usage, "There is no data \(Output.quoted(name)).",
                    advice: "\"ubiquitousctl admin list\" lists all data.")
            }
            guard data.isSetAside || data.obstacle != nil else {
                throw Failure(
                    .usage, "\(name) is the data of a user of this machine, and was not set aside.",
                    advice: "\"ubiquitousctl admin list\" lists all data.")
            }
            let gift = "make \(name) the data of \(user)"
            guard present.contains(where: { $0.uid == uid && !$0.isSetAside }) else { return gift }
            if !replace, try await !object.isFree(uid) { throw occupied }
            return gift + ", and set the present data aside"
        } _: {
            do {
                let aside = try await object.adopt(name, by: uid, replacing: replace, besides: names)
                if let aside {
                    Output.remark("the former data of \(user) was set aside as \(Output.printableWord(aside))")
                }
            } catch let error as UbiquitousStoreError where error.code == .conflict { throw occupied }
            try await RestoredCopies.removeOldest(object)
            Output.remark(RestoredCopies.restart)
        }
    }

    private var occupied: Failure {
        Failure(.refused, "\(user) has values or an account already.", advice: "With --replace they are set aside.")
    }
}

/// `admin delete`.
struct DeleteDataCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "delete",
        abstract: "Removes a user's data from this machine.",
        discussion: """
            The remotes of accounts stay as they are. What a user of this machine has in use, and the last data of such \
            a user, is removed with --force only.
            """)

    @OptionGroup var bus: BusOptions
    @OptionGroup var change: ChangeOptions

    @Flag(help: "Delete the data even if it belongs to a user of this machine.")
    var force = false

    @Argument(
        help: "The data, as \"admin list\" names it, or the user whose data it is.",
        completion: .custom { arguments, _, _ in StoreCompletion.data(arguments, isSetAside: false) })
    var name: String

    func perform() async throws {
        let object = AdministrationObject(try await bus.connect())
        var directory = name
        try await change.make("Removing data") {
            let all = try await object.data()
            let named = all.filter { $0.name == name }
            let candidates = named.isEmpty ? all.filter { !$0.isSetAside && $0.user == name } : named
            if candidates.count > 1 {
                let names = candidates.map { Output.printableWord($0.name) }.joined(separator: ", ")
                throw Failure(
                    .usage, "There is data of several uids under the name \(Output.quoted(name)): \(names).",
                    advice: "Name one of them.")
            }
            guard let data = candidates.first else {
                if isUser { return nil }
                throw Failure(
                    .usage, "There is no data \(Output.quoted(name)), and no user of that name who has any.",
                    advice: "\"ubiquitousctl admin list\" lists all data.")
            }
            directory = data.name
            if !force { try checkIsSpare(data, among: all) }
            return "remove \(directory), \(SizeText.text(data.bytes))"
        } _: {
            try await object.delete(directory, forced: force)
        }
    }

    /// Refuses data that a user of this machine has in use, and the last data of such a user.
    private func checkIsSpare(_ data: UserDataDescription, among all: [UserDataDescription]) throws {
        let advice: Sentence = "With --force it is removed anyway."
        if !data.isSetAside, LocalUser.name(of: data.uid) != nil {
            throw Failure(.refused, "\(data.name) is the data of a user of this machine.", advice: advice)
        }
        guard !data.user.isEmpty, let uid = LocalUser.uid(named: data.user) else { return }
        let isLast = !all.contains { $0.name != data.name && ($0.user == data.user || !$0.isSetAside && $0.uid == uid) }
        if isLast {
            throw Failure(
                .refused, "\(data.name) is the only data of \(Output.quoted(data.user)) on this machine.",
                advice: advice)
        }
    }

    /// Whether a user of this machine is meant, who may have no data any more. Any other name may be a typing mistake.
    private var isUser: Bool {
        if LocalUser.uid(named: name) != nil { return true }
        guard let uid = DataNames.uid(inName: name), name == "u\(uid)" else { return false }
        return LocalUser.name(of: uid) != nil
    }
}
