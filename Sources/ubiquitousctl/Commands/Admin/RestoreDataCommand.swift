// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Files
internal import Glibc
internal import PlainText
internal import SDBus
internal import StoreBus
internal import UbiquitousStore

/// `admin restore`.
struct RestoreDataCommand: ServiceCommand {
    static let configuration = CommandConfiguration(
        commandName: "restore",
        abstract: "Restores users' data from an archive of \"admin backup\", on this machine or another one.",
        discussion: """
            Users are found by name; their uids may differ here. If this machine has no user of that name, the data is \
            set aside, and "admin adopt" gives it to a user. If the user already has values or an account, the data \
            from the archive is set aside too, and the command exits with 3; with --replace, it restores that data and \
            sets aside what the user has. Of the copies set aside, the newest four of each user are kept. Restart the \
            service ("systemctl restart ubiquitous-store") so that open programs show the restored values. Data that \
            the service can't use, for example because a newer version wrote it, stays set aside; the command goes on, \
            and exits with 3.
            """)

    @OptionGroup var bus: BusOptions

    @Flag(help: "Replace the values or the account that a user already has; they are set aside.")
    var replace = false

    @Flag(
        name: [.customLong("check"), .customLong("dry-run"), .customShort("n")],
        help: "Change nothing, and say what would change.")
    var check = false

    @Option(
        name: .customLong("only"), parsing: .singleValue,
        help: ArgumentHelp("Restore this user only, by the name in the archive; repeatable.", valueName: "user"))
    var only: [String] = []

    @Option(
        name: .customLong("as"), parsing: .singleValue,
        help: ArgumentHelp("Give a user's data to the user of another name; repeatable.", valueName: "old=new"))
    var renamed: [String] = []

    @Argument(help: "The archive.", completion: .file())
    var file: String

    func perform() async throws {
        let names = try newNames()
        let object = AdministrationObject(try await bus.connect())
        let present = Set(try await object.data().map(\.name))
        let arrived = try unpack(
            as: try await ServiceOwner(object), besides: present, naming: only + names.keys.sorted())
        var (isRefused, isGiven) = (false, false)
        if check {
            isRefused = try await !isReported(arrived, names, present, object)
        } else {
            var all = present.union(arrived.map(\.name))
            for data in arrived {
                switch try await adopt(data, by: names[data.user] ?? data.user, &all, object) {
                case .given: isGiven = true
                case .setAside: break
                case .refused: isRefused = true
                }
            }
            try await RestoredCopies.removeOldest(object)
            if isGiven { Output.remark(RestoredCopies.restart) }
        }
        if isRefused { throw ReportedFailure(outcome: .refused) }
    }

    private func newNames() throws -> [String: String] {
        var names: [String: String] = [:]
        for pair in renamed {
            let words = pair.split(separator: "=", maxSplits: 1).map(String.init)
            guard words.count == 2 else { throw Failure(.usage, "--as takes OLD=NEW, not \(Output.quoted(pair)).") }
            _ = try LocalUser.uid(of: words[1])
            names[words[0]] = words[1]
        }
        return names
    }

    /// Prints what would be done with the data of an archive.
    /// - Returns: `false` if a user has data already, which would be in the way, or wouldn't get any of several.
    @BusActor
    private func isReported(
        _ arrived: [ArrivedData], _ names: [String: String], _ present: Set<String>, _ object: AdministrationObject
    ) async throws -> Bool {
        if arrived.isEmpty { Output.print("nothing would change") }
        var (given, isFree): (Set<UInt32>, Bool) = ([], true)
        for data in arrived {
            let (user, name) = (names[data.user] ?? data.user, Output.printableWord(data.name))
            guard data.kind == .inUse, let uid = LocalUser.uid(named: user) else {
                Output.print("would set \(name) aside: \(reason(data, user))")
                if isUndecided(data, user) { isFree = false }
                continue
            }
            let gift = "give \(Output.printableWord(user)) the data of \(data.label)"
            let isOccupied = try await !object.isFree(uid) || given.contains(uid)
            if isOccupied, !replace {
                Output.print("would set \(name) aside: \(Output.printableWord(user)) has values or an account already")
                isFree = false
            } else {
                let isPresent = present.contains("u\(uid)") || given.contains(uid)
                Output.print("would \(gift)\(isPresent ? ", and set the present data aside" : "")")
                given.insert(uid)
            }
        }
        return isFree
    }

    /// Returns why data can't be given to a user.
    private func reason(_ data: ArrivedData, _ user: String) -> String {
        let name = Output.printableWord(data.user)
        switch data.kind {
        case .setAside: return "as in the archive"
        case .former(let uid): return "\(name) had the uid \(uid) when the archive was made"
        case .unclear where isUndecided(data, user):
            return "the archive has data of \(name) under several uids, and doesn't say which was the user's"
        case .inUse, .unclear: return "there is no user \(Output.quoted(user)) here"
        }
    }

    /// Whether a user doesn't get data only because the archive doesn't say which of several is the user's.
    private func isUndecided(_ data: ArrivedData, _ user: String) -> Bool {
        data.kind == .unclear && LocalUser.uid(named: user) != nil
    }

    private enum Adoption {
        case given
        /// As in the archive, or because there is no such user, or the user's data was under another uid.
        case setAside
        /// The user has data already, which is in the way, or the service can't use this, or it may not be the user's.
        case refused
    }

    /// Gives unpacked data to the user of a name, and prints the result.
    /// - Parameter all: the names of all data, to which what this adds is added.
    @BusActor
    private func adopt(
        _ data: ArrivedData, by user: String, _ all: inout Set<String>, _ object: AdministrationObject
    ) async throws -> Adoption {
        let name = Output.printableWord(data.name)
        if isUndecided(data, user) {
            let (word, owner) = (Output.shellWord(name), Output.shellWord(user))
            let failure = Failure(
                .refused,
                """
                \(name) is set aside: the archive has data of \(Output.quoted(data.user)) under several uids, and doesn't \
                say which was the user's.
                """,
                advice: "If it is the right data, \"ubiquitousctl admin adopt \(word) \(owner)\" gives it to that user."
            )
            Output.complain(failure.description)
            return .refused
        }
        guard data.kind == .inUse, let uid = LocalUser.uid(named: user) else {
            Output.print("\(name) is set aside: \(reason(data, user))")
            return .setAside
        }
        do {
            let aside = try await object.adopt(data.name, by: uid, replacing: replace, besides: all)
            all.formUnion(["u\(uid)"] + [aside].compactMap(\.self))
            let remark = aside.map { "; the former data was set aside as \(Output.printableWord($0))" } ?? ""
            Output.print("\(Output.printableWord(user)) has the data of \(data.label)\(remark)")
            return .given
        } catch let error as UbiquitousStoreError where error.code == .conflict {
            let (data, owner) = (Output.shellWord(name), Output.shellWord(user))
            let failure = Failure(
                .refused, "\(Output.printableWord(user)) has values or an account already; \(name) is set aside.",
                advice: "\"ubiquitousctl admin adopt --replace \(data) \(owner)\" replaces their data with it.")
            Output.complain(failure.description)
            return .refused
        } catch let error as UbiquitousStoreError where error.code != .serviceUnavailable {
            // The data of one user keeps no other from getting theirs.
            let heir = Output.printableWord(user)
            let failure = Failure(
                .refused, "\(heir) doesn't get the data of \(data.label); \(name) is set aside.",
                advice: Sentence(service: error.message))
            Output.complain(failure.description)
            return .refused
        }
    }

    /// The bytes of the disk that an archive leaves: what the service leaves to users who have little, and as much again,
    /// so that the others' programs can write while it is unpacked.
    private static let reserve: UInt64 = 64 << 20

    /// Unpacks the archive into the state directory, as data that was set aside.
    /// - Parameter named: users whose data the archive must contain.
    private func unpack(
        as owner: ServiceOwner, besides present: Set<String>, naming named: [String]
    ) throws -> [ArrivedData] {
        let stateDirectory = owner.stateDirectory
        let archive = open(file, O_RDONLY | O_CLOEXEC)
        guard archive >= 0 else {
            throw Failure(.usage, "\(Output.quoted(file)) can't be read: \(String(cString: strerror(errno))).")
        }
        defer { close(archive) }
        return try Interruption.deferring {
            let place = try owner.perform { try Self.makePlace(in: stateDirectory) }
            defer {
                // An archive may have directories that nobody may open.
                _ = owner.run(["chmod", "-R", "u+rwX", "--", place])
                _ = owner.run(["rm", "-rf", "--", place])
            }
            let tar = ["tar"] + ServiceOwner.compression(of: file) + ["--no-same-owner", "-C", place, "-x"]
            let errors = Self.unnamedFile()
            defer { if let errors { close(errors) } }
            let hasRoom = { Files.freeBytes(at: stateDirectory).map { $0 >= Self.reserve } ?? true }
            let code = owner.run(tar, input: archive, errors: errors ?? STDERR_FILENO, asLongAs: hasRoom)
            guard code == 0, hasRoom() else {
                let reason = errors.map(Self.clause) ?? ""
                if !hasRoom() {
                    throw Failure(
                        .refused, "There is no room in \(stateDirectory) to unpack \(Output.quoted(file))\(reason).",
                        advice: "Nothing was changed.")
                }
                throw Failure(
                    .usage, "\(Output.quoted(file)) can't be unpacked\(reason).",
                    advice: "Name an archive that \"ubiquitousctl admin backup\" has made.")
            }
            try owner.perform { try checkContents(of: place) }
            // Data that replaces other data must not be lost in a power cut.
            guard check || owner.run(["sync", "-f", place]) == 0 else {
                throw Failure(.refused, "What was unpacked in \(stateDirectory) can't be written to the disk.")
            }
            return try owner.perform { try putInPlace(from: place, stateDirectory, besides: present, naming: named) }
        }
    }

    /// Makes the directory into which an archive is unpacked. Another restore may be under way.
    private static func makePlace(in stateDirectory: String) throws -> String {
        var number = UInt64(max(0, time(nil))) * 1_000_000
        while true {
            let place = "\(stateDirectory)/restore.\(number)"
            if mkdir(place, 0o700) == 0 { return place }
            guard errno == EEXIST else {
                throw Failure(.refused, "\(place) can't be made: \(String(cString: strerror(errno))).")
            }
            number += 1
        }
    }

    /// Refuses an archive that holds anything but directories and files of its own, and makes all of them private. The
    /// service would follow a link into another user's data.
    private func checkContents(of directory: String) throws {
        for name in try DirectoryListing.list(directory) {
            let path = "\(directory)/\(name)"
            var status = stat()
            let kind = lstat(path, &status) == 0 ? status.st_mode & S_IFMT : 0
            guard kind == S_IFDIR || kind == S_IFREG && status.st_nlink == 1 else {
                throw Failure(
                    .usage, "\(Output.quoted(file)) holds \(Output.quoted(name)), which is a link or not a file.",
                    advice: "Name an archive that \"ubiquitousctl admin backup\" has made.")
            }
            guard chmod(path, kind == S_IFDIR ? 0o700 : 0o600) == 0 else {
                throw Failure(.refused, "\(path) can't be made private: \(String(cString: strerror(errno))).")
            }
            if kind == S_IFDIR { try checkContents(of: path) }
        }
    }

    /// Opens a temporary file that nobody else sees; `nil` if none can be made.
    private static func unnamedFile() -> Int32? {
        var template = Array("/tmp/ubiquitousctl.XXXXXX".utf8CString)
        let descriptor = mkstemp(&template)
        if descriptor >= 0 { unlink(template) }
        return descriptor >= 0 ? descriptor : nil
    }

    /// Returns the first line with text that tar or a program that it runs has written, with a colon before it.
    private static func clause(_ errors: Int32) -> String {
        var bytes = [UInt8](repeating: 0, count: 1024)
        let count = pread(errors, &bytes, bytes.count, 0)
        guard let line = bytes.prefix(max(0, count)).split(separator: UInt8(ascii: "\n")).first else { return "" }
        return ": " + Output.printable(String(decoding: line, as: UTF8.self)).clause
    }

    /// Refuses to give one user the data of several.
    private func checkHeirs(_ wanted: [ArrivedData], _ names: [String: String]) throws {
        var heirs: [String: String] = [:]
        for data in wanted where data.kind == .inUse {
            let heir = names[data.user] ?? data.user
            if let other = heirs.updateValue(data.user, forKey: heir) {
                throw Failure(
                    .usage,
                    "\(Output.quoted(heir)) would get the data of both \(Output.quoted(other)) and \(Output.quoted(data.user)).",
                    advice: "Name one of them with --only, or give the other to somebody else with --as.")
            }
        }
    }

    private func putInPlace(
        from place: String, _ stateDirectory: String, besides present: Set<String>, naming named: [String]
    ) throws -> [ArrivedData] {
        // Another restore may have set something aside since the data was listed.
        let present = present.union(DirectoryListing.names(in: stateDirectory))
        let arrived = ArrivedData.all(in: place, besides: present)
        let users = Set(arrived.map(\.user))
        if let user = named.first(where: { !users.contains($0) }) {
            throw Failure(.usage, "There is no data of \(Output.quoted(user)) in \(Output.quoted(file)).")
        }
        let wanted = arrived.filter { only.isEmpty || only.contains($0.user) }
        if wanted.isEmpty { throw Failure(.usage, "There is nothing to restore in \(Output.quoted(file)).") }
        if !renamed.isEmpty { try checkHeirs(wanted, try newNames()) }
        // Skip data that was set aside in the archive and is also set aside here.
        let new = wanted.filter { !present.contains($0.name) }
        if check { return new }
        let placed = try new.map { data in
            // What was set aside in the archive is not a copy that may be removed here.
            RestoredCopies.mark("\(place)/\(data.directory)", isCopy: data.kind != .setAside)
            guard rename("\(place)/\(data.directory)", "\(stateDirectory)/\(data.name)") == 0 else {
                throw Failure(.refused, "\(data.name) can't be put in place: \(String(cString: strerror(errno))).")
            }
            return data
        }
        try Files.synchronize(directory: stateDirectory)
        return placed
    }
}
