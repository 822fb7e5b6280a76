// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Logging
internal import StoreBus

/// The place of one user's data in the state directory.
struct UserDirectory {
    let uid: UInt32
    let path: String
    private let stateDirectory: String

    /// Where a user's data is or would be.
    init(of uid: UInt32, in stateDirectory: String) {
        self.uid = uid
        self.stateDirectory = stateDirectory
        path = "\(stateDirectory)/u\(uid)"
    }

    /// Whether there is data of the user.
    var exists: Bool { access(path, F_OK) == 0 }

    /// The users that have data, by number.
    static func users(in stateDirectory: String) -> [UInt32] {
        DirectoryListing.names(in: stateDirectory).compactMap { name in
            // "u01" is no name of ours, though it is a number.
            guard name.first == "u", let uid = UInt32(name.dropFirst()), name == "u\(uid)" else { return nil }
            return uid
        }.sorted()
    }

    /// Whether the data belongs to another user, who had this number before; `nil` where that can't be told at once.
    var isSomebodyElses: Bool? {
        guard case .known(let entry) = UserLookup.shared.entry(.uid(uid)) else { return nil }
        do { return try formerOwner(now: entry?.name) != nil } catch { return nil }
    }

    private func formerOwner(now name: String?) throws(UserName.Late) -> String? {
        try Self.formerOwner(of: uid, recorded: recordedName, now: name, lookUp: UserName.uidAtOnce)
    }

    /// The user who had a number before, if the data is that user's.
    ///
    /// A name that can't be looked up says nothing. A recorded name that still leads to the number is another form of
    /// the same user's name, as directory services have several.
    static func formerOwner(
        of uid: UInt32, recorded owner: String?, now name: String?, lookUp: (String) throws(UserName.Late) -> UInt32?
    ) throws(UserName.Late) -> String? {
        guard let name, let owner, owner != name, try lookUp(owner) != uid else { return nil }
        return owner
    }

    /// Makes the directory, and makes sure that its content belongs to this user.
    ///
    /// If the uid was given to another user, its name differs from the recorded one: the data is the former user's and is
    /// set aside. A name that can't be looked up decides nothing. Where it is open whether both names are one user's,
    /// nobody gets the data.
    func prepare(logger: Logger, time: UInt64) throws(PrivateFile.Failure) {
        let name = UserName.nameAtOnce(of: uid)
        let formerOwner: String?
        do { formerOwner = try self.formerOwner(now: name) } catch {
            throw PrivateFile.Failure(path: path, code: EAGAIN)
        }
        if exists, let name, let owner = formerOwner {
            let aside = try setAside(as: owner, time: time)
            logger.warning(
                """
                The user id \(uid) is \(name)'s now and was \(owner)'s: \(owner)'s data was set aside as \(aside). \
                If \(name) is a new name of the same person, "ubiquitousctl admin adopt" gives it back.
                """)
        }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw PrivateFile.Failure(path: path, code: errno) }
        if recordedName != nil { return }
        // What is written and synchronised in the directory is lost with its name.
        try PrivateFile.synchronize(directory: stateDirectory)
        if let name { try PrivateFile.replace(nameFile, with: Array(name.utf8)) }
    }

    /// Gives the data a name that says whose it was, and since when it isn't in use.
    private func setAside(as owner: String, time: UInt64) throws(PrivateFile.Failure) -> String {
        let name = DataNames.setAside(
            uid: uid, user: owner, seconds: time / 1_000_000, besides: DirectoryListing.names(in: stateDirectory))
        let aside = "\(stateDirectory)/\(name)"
        guard rename(path, aside) == 0 else { throw PrivateFile.Failure(path: aside, code: errno) }
        return aside
    }

    /// The names of the databases that were damaged and set aside, sorted.
    var databasesSetAside: [String] {
        DirectoryListing.names(in: path).filter {
            $0.contains(".damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
        }.sorted()
    }

    /// How many bytes the service may still write; `nil` if that can't be found out.
    var freeBytes: UInt64? {
        var status = statvfs()
        guard statvfs(path, &status) == 0 else { return nil }
        return UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue
    }

    /// The name of the user whose data it is; `nil` where it can't be told.
    var ownerName: String? { recordedName ?? UserName.nameAtOnce(of: uid) }

    private var nameFile: String { path + "/user" }

    private var recordedName: String? { Self.recordedName(in: path) }

    /// The name of the user whose data a directory has; `nil` if it isn't recorded.
    static func recordedName(in path: String) -> String? {
        Files.text(of: path + "/user", atMost: 256).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Notes in data that was set aside that it is this user's; not on the bus's thread.
    func mark(_ data: UserData) throws(PrivateFile.Failure) {
        // Without a name here, the first name that is found when the data is opened counts.
        if let name = UserName.name(of: uid) {
            try PrivateFile.replace(data.path + "/user", with: Array(name.utf8))
        } else {
            unlink(data.path + "/user")
        }
    }

    /// Makes marked data this user's. Data that the user has already is set aside.
    func adopt(_ data: UserData, time: UInt64) throws(PrivateFile.Failure) {
        if exists {
            let aside = try setAside(as: recordedName ?? "unknown", time: time)
            close(open("\(aside)/\(DataNames.copyMark)", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600))
        }
        unlink("\(data.path)/\(DataNames.copyMark)")
        guard rename(data.path, path) == 0 else { throw PrivateFile.Failure(path: path, code: errno) }
    }

    /// Has what was adopted survive a power cut; not on the bus's thread.
    func settle() throws(PrivateFile.Failure) { try PrivateFile.synchronize(directory: stateDirectory) }
}
