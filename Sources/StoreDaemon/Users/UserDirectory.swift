// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Glibc
internal import Logging

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

    /// Whether what is there was another user's of the same number. A name that can't be looked up says nothing.
    var isSomebodyElses: Bool {
        guard let owner = recordedName, let name = UserName.name(of: uid) else { return false }
        return owner != name
    }

    /// Makes the directory, and sees to it that what is there is this user's.
    ///
    /// A uid that was given to somebody else has another name now: what is there is its predecessor's, and is
    /// set aside. A name that can't be looked up says nothing.
    func prepare(logger: Logger, time: UInt64) throws(PrivateFile.Failure) {
        let name = UserName.name(of: uid)
        if exists, let name, let owner = recordedName, owner != name {
            let aside = "\(path).\(owner).\(time / 1_000_000)"
            guard rename(path, aside) == 0 else { throw PrivateFile.Failure(path: aside, code: errno) }
            logger.warning(
                """
                The user id \(uid) is \(name)'s now and was \(owner)'s: \(owner)'s data was set aside as \(aside). \
                Remove it, or if \(name) is a new name of the same person, stop the service and move it back.
                """)
        }
        guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw PrivateFile.Failure(path: path, code: errno) }
        if recordedName != nil { return }
        // What is written and synchronised in the directory is lost with its name.
        try PrivateFile.synchronize(directory: stateDirectory)
        if let name { try PrivateFile.replace(nameFile, with: Array(name.utf8)) }
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
    var ownerName: String? { recordedName ?? UserName.name(of: uid) }

    private var nameFile: String { path + "/user" }

    private var recordedName: String? {
        Files.text(of: nameFile, atMost: 256).flatMap { $0.isEmpty ? nil : $0 }
    }
}
