// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Foundation
internal import Glibc
internal import PlainText
internal import SDBus
internal import StoreBus

/// The data of a user in the state directory, in use or set aside.
struct UserData {
    /// The directory's name: `u1000`, or `u1000.ada.1763800000` if it was set aside.
    let name: String
    let path: String
    /// The user id of its present or former user.
    let uid: UInt32
    /// The name of its user; `nil` if it isn't known.
    let owner: String?
    /// When it was set aside, in microseconds since 1970; 0 if it is in use or the time isn't known.
    let time: UInt64

    var isSetAside: Bool { name != "u\(uid)" }

    /// Whether a restore has set it aside.
    var isCopy: Bool {
        var status = stat()
        return isSetAside && lstat("\(path)/\(DataNames.copyMark)", &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    }

    /// Makes data from a name in the state directory; `nil` if it is not the name of a user's data.
    private init?(_ name: String, in stateDirectory: String) {
        if name.utf8.contains(UInt8(ascii: "/")) { return nil }
        // A user's name can have dots: u1000.ada.lovelace@example.org.1763800000.
        let parts = name.split(separator: ".", omittingEmptySubsequences: false)
        guard let uid = DataNames.uid(inName: name) else { return nil }
        (self.name, self.uid, path) = (name, uid, "\(stateDirectory)/\(name)")
        owner = UserDirectory.recordedName(in: path)
        let seconds = parts.count == 1 ? nil : DataNames.seconds(parts[parts.count - 1])
        time = min((seconds ?? 0) * 1_000_000, Self.lastChange(of: path))
    }

    /// Returns when a directory was last renamed or changed otherwise, in microseconds since 1970. Its name may have a
    /// later time, which comes after those of the user's other names.
    private static func lastChange(of path: String) -> UInt64 {
        var status = stat()
        guard lstat(path, &status) == 0 else { return .max }
        return UInt64(max(0, status.st_ctim.tv_sec)) * 1_000_000 + UInt64(max(0, status.st_ctim.tv_nsec)) / 1000
    }

    /// Returns all users' data, sorted by user id and name.
    /// - Throws: `IOError` if the directory can't be read.
    static func all(in stateDirectory: String) throws(BusError) -> [UserData] {
        let names: [String]
        do throws(SystemError) { names = try DirectoryListing.list(stateDirectory) } catch {
            throw .inputOutput("The state directory \(stateDirectory) can't be read: \(error).")
        }
        return names.compactMap { UserData($0, in: stateDirectory) }
            .sorted { ($0.uid, $0.name) < ($1.uid, $1.name) }
    }

    /// Returns data by its name.
    /// - Throws: `InvalidArgs` if there is none.
    static func named(_ name: String, in stateDirectory: String) throws(BusError) -> UserData {
        guard let data = UserData(name, in: stateDirectory), access(data.path, F_OK) == 0 else {
            throw absent(name)
        }
        return data
    }

    /// The error for data that doesn't exist.
    static func absent(_ name: String) -> BusError {
        .invalidArguments("There is no data \"\(name)\"; see ListData.")
    }

    /// The disk space of its files, in bytes. It reads the status of each file.
    var bytes: UInt64 {
        let names = FileManager.default.enumerator(atPath: path)?.compactMap { $0 as? String } ?? []
        return names.reduce(0) { sum, name in
            var status = stat()
            return lstat(path + "/" + name, &status) == 0 ? sum + UInt64(max(0, status.st_blocks)) * 512 : sum
        }
    }
}

/// Data that is being removed. It is renamed first, because its user may come back meanwhile.
enum RemovedData {
    private static let prefix = "removed."

    /// Renames a directory so that it belongs to no user.
    /// - Parameter time: the present time, in microseconds since 1970.
    /// - Returns: the directory's new path, to be removed.
    static func take(_ path: String, in stateDirectory: String, time: UInt64) throws(PrivateFile.Failure) -> String {
        var number = time
        while access("\(stateDirectory)/\(prefix)\(number)", F_OK) == 0 { number += 1 }
        let place = "\(stateDirectory)/\(prefix)\(number)"
        guard rename(path, place) == 0 else { throw PrivateFile.Failure(path: path, code: errno) }
        return place
    }

    /// Removes a directory in the state directory. It must not run on the bus's thread.
    static func remove(_ path: String) throws(BusError) {
        do { try FileManager.default.removeItem(atPath: path) } catch {
            throw .failed("\(path) can't be removed: \(error.localizedDescription.clause).")
        }
    }

    /// Removes what was left when the service ended.
    static func finish(in stateDirectory: String) {
        for name in DirectoryListing.names(in: stateDirectory) where name.hasPrefix(prefix) {
            try? remove("\(stateDirectory)/\(name)")
        }
    }
}
