// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Logging
internal import StoreBus

/// The directory of a user's data in the state directory.
struct UserDirectory {
    let uid: UInt32
    let path: String
    private let stateDirectory: String

    /// Finds the directory's path; the directory need not exist.
    init(of uid: UInt32, in stateDirectory: String) {
        self.uid = uid
        self.stateDirectory = stateDirectory
        path = "\(stateDirectory)/u\(uid)"
    }

    /// Whether the user has data.
    var exists: Bool { access(path, F_OK) == 0 }

    /// Returns the ids of the users that have data, sorted.
    static func users(in stateDirectory: String) -> [UInt32] {
        DirectoryListing.names(in: stateDirectory).compactMap { name in
            // The service writes no "u01", though it is a number.
            guard name.first == "u", let uid = UInt32(name.dropFirst()), name == "u\(uid)" else { return nil }
            return uid
        }.sorted()
    }

    /// Whose data it is, as far as can be found out at once.
    var owner: RecordedOwner {
        RecordedOwner(of: uid, recorded: recordedName, lookUp: UserLookup.shared.entry)
    }

    /// Makes the directory, and ensures that its content belongs to this user.
    ///
    /// If the user id was given to another user, the name differs from the recorded one. The data is the former user's
    /// then, and is set aside. A name that can't be looked up proves nothing. If it is unclear whether both names are
    /// one user's, nobody gets the data.
    /// - Parameter owner: whose data it is.
    func prepare(for owner: RecordedOwner, logger: Logger, time: UInt64) throws(PrivateFile.Failure) {
        if owner == .perhapsFormer { throw PrivateFile.Failure(path: path, code: EAGAIN) }
        if exists, case .former(let owner, let name) = owner {
            let aside = try setAside(as: owner, time: time)
            logger.warning(
                """
                The user id \(uid) is \(name)'s now and was \(owner)'s: \(owner)'s data was set aside as \(aside). \
                If \(name) is a new name of the same person, "ubiquitousctl admin adopt" gives it back.
                """)
        }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw PrivateFile.Failure(path: path, code: errno) }
        if recordedName != nil { return }
        // Without its name, what is written and synced in the directory would be lost.
        try PrivateFile.synchronize(directory: stateDirectory)
        switch owner {
        case .user(let name), .former(_, let name): try PrivateFile.replace(nameFile, with: Array(name.utf8))
        case .nameless, .perhapsUser, .perhapsFormer: break
        }
    }

    /// Renames the data, which isn't open, for its former user and the time.
    /// - Returns: its new path.
    func setAside(as owner: String, time: UInt64) throws(PrivateFile.Failure) -> String {
        let name = DataNames.setAside(
            uid: uid, user: owner, seconds: time / 1_000_000, besides: DirectoryListing.names(in: stateDirectory))
        let aside = "\(stateDirectory)/\(name)"
        guard rename(path, aside) == 0 else { throw PrivateFile.Failure(path: aside, code: errno) }
        return aside
    }

    /// The names of the databases that were set aside because of damage, sorted.
    var databasesSetAside: [String] {
        DirectoryListing.names(in: path).filter {
            $0.contains(".damaged-") && !$0.hasSuffix("-wal") && !$0.hasSuffix("-shm")
        }.sorted()
    }

    /// How many bytes the service may still write, at most half of what an integer holds, so that sums fit; `nil` if the
    /// file system doesn't tell.
    var freeBytes: Int? { Files.freeBytes(at: path).map { min(Int(clamping: $0), .max / 2) } }

    /// The name of the user whose data it is; `nil` if it isn't known.
    var ownerName: String? { recordedName ?? UserName.nameAtOnce(of: uid) }

    private var nameFile: String { path + "/user" }

    private var recordedName: String? { Self.recordedName(in: path) }

    /// Returns the name of the user whose data a directory has; `nil` if it isn't recorded.
    static func recordedName(in path: String) -> String? {
        Files.text(of: path + "/user", atMost: DataNames.longestUserName).flatMap { $0.isEmpty ? nil : $0 }
    }

    /// Records in data that was set aside that it is this user's. It must not run on the bus's thread.
    func mark(_ data: UserData) throws(PrivateFile.Failure) {
        // If the name isn't known here, it is recorded when the data is next opened.
        if let name = UserName.name(of: uid) {
            try PrivateFile.replace(data.path + "/user", with: Array(name.utf8))
        } else {
            unlink(data.path + "/user")
        }
    }

    /// Makes marked data this user's. Data that the user already has is set aside.
    /// - Parameter begin: opens the data in its place, and closes it if it throws. Then both go back to their places.
    func adopt(_ data: UserData, time: UInt64, _ begin: () throws -> Void) throws {
        let aside = exists ? try setAside(as: recordedName ?? "unknown", time: time) : nil
        do {
            try PrivateFile.move(data.path, to: path)
            do { try begin() } catch {
                try PrivateFile.move(path, to: data.path)
                throw error
            }
        } catch {
            if let aside { rename(aside, path) }
            throw error
        }
        unlink("\(path)/\(DataNames.copyMark)")
        guard let aside else { return }
        close(open("\(aside)/\(DataNames.copyMark)", O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600))
    }

    /// Syncs an adoption to the disk. It must not run on the bus's thread.
    func settle() throws(PrivateFile.Failure) { try PrivateFile.synchronize(directory: stateDirectory) }
}
