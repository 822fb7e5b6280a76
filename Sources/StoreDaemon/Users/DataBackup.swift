// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Foundation
internal import Glibc
internal import SDBus
internal import StoreBus
internal import StoreEngine

/// Copies of all users' data, made while the service runs. Each is a directory in the state directory.
///
/// Each database is copied in one transaction, and then the other files. The service replaces those only as a whole,
/// and before it writes the database. So a copy is in a state that a crash could have left, and the next start recovers
/// from it. Nobody writes data that was set aside, and SQLite doesn't read it here, because it may come from an archive
/// that somebody else has made: see ``ClosedDatabase/prepareForeign()``.
///
/// Data that can't be read doesn't keep the others' from being copied. It is named in the file ``DataNames/notCopied``.
///
/// A restore finds users by their names. After a user's uid was changed, there is data of the same name under both: the
/// file ``DataNames/namesakes`` says which of them was the user's.
enum DataBackup {
    private static let prefixes = [DataNames.backupPrefix, "restore."]
    /// The age, in microseconds, at which a copy is removed, because an interrupted program has left it.
    private static let longestLife: UInt64 = 86_400_000_000

    /// Makes a copy. It must not run on the bus's thread.
    /// - Parameter time: the present time, in microseconds since 1970.
    /// - Returns: the copy's directory.
    static func make(in stateDirectory: String, time: UInt64) throws -> String {
        let path = "\(stateDirectory)/\(prefixes[0])\(time)"
        removeOld(in: stateDirectory, time)
        try copyAll(from: stateDirectory, to: path)
        return path
    }

    /// Returns the directory of a copy by its name; `nil` if there is none.
    static func path(of name: String, in stateDirectory: String) -> String? {
        let path = "\(stateDirectory)/\(name)"
        return time(of: name) != nil && access(path, F_OK) == 0 ? path : nil
    }

    /// Returns when a copy was made, by its name; `nil` if it is not a copy's name.
    private static func time(of name: String) -> UInt64? {
        prefixes.first { name.hasPrefix($0) }.flatMap { UInt64(name.dropFirst($0.count)) }
    }

    private static func copyAll(from stateDirectory: String, to path: String) throws {
        try make(path)
        do {
            let all = try UserData.all(in: stateDirectory)
            var lines: [String] = []
            for data in all {
                do { try copy(data, to: "\(path)/\(data.name)") } catch {
                    if case EngineError.diskFull = error { throw noRoom(in: stateDirectory) }
                    if isFull(path) { throw noRoom(in: stateDirectory) }
                    try? FileManager.default.removeItem(atPath: "\(path)/\(data.name)")
                    lines.append("\(data.name): \(BusError(mapping: error).message)\n")
                    // Then something else is wrong than one user's data.
                    if lines.count == all.count { throw error }
                }
            }
            if !lines.isEmpty {
                try Files.replace(
                    "\(path)/\(DataNames.notCopied)", with: Array(lines.joined().utf8), by: "\(path)/new")
            }
            try recordNamesakes(among: all, in: path)
        } catch {
            try? FileManager.default.removeItem(atPath: path)
            throw error
        }
    }

    private static func recordNamesakes(among all: [UserData], in path: String) throws {
        let owners = all.compactMap { $0.isSetAside ? nil : $0.owner }
        let namesakes = Dictionary(grouping: owners) { $0 }.filter { $0.value.count > 1 && !$0.key.contains("\n") }
        let lines = namesakes.keys.sorted().compactMap { name -> String? in
            guard case .known(let user) = UserEntry.lookUp(.name(name)) else { return nil }
            return "\(user.uid) \(name)\n"
        }
        if lines.isEmpty { return }
        try Files.replace("\(path)/\(DataNames.namesakes)", with: Array(lines.joined().utf8), by: "\(path)/new")
    }

    private static func noRoom(in stateDirectory: String) -> BusError {
        .inputOutput(
            "There is no space left in \(stateDirectory) for a copy of the data, which is made there first. Free some, "
                + "or stop the service and copy the files.")
    }

    /// Whether the file system has less room left than a copy of a small database takes.
    private static func isFull(_ path: String) -> Bool { Files.freeBytes(at: path) ?? 0 < 1 << 20 }

    private static func make(_ path: String) throws {
        guard mkdir(path, 0o700) == 0 else {
            throw BusError.failed("\(path) can't be made: \(String(cString: strerror(errno))).")
        }
    }

    private static func copy(_ data: UserData, to path: String) throws {
        let directory = data.path
        try make(path)
        if !data.isSetAside { try DatabaseFile.copy(from: directory, to: path) }
        // A key is written before the file that names it, and may move to the other slot meanwhile.
        let first = [AccountFile.name, AccountKeyFile.Slot.next.rawValue]
        for name in first { try copyFile(name, from: directory, to: path) }
        try copyFiles(from: directory, to: path) {
            !first.contains($0) && (data.isSetAside || !DatabaseFile.includes($0))
        }
        try MachineRecord.write(in: path, uid: data.uid)
    }

    private static func copyFiles(from directory: String, to path: String, where isWanted: (String) -> Bool) throws {
        let names: [String]
        do throws(SystemError) { names = try DirectoryListing.list(directory) } catch {
            throw BusError.failed("The directory \(directory) can't be read: \(error).")
        }
        for name in names where isWanted(name) {
            var status = stat()
            guard lstat("\(directory)/\(name)", &status) == 0, status.st_mode & S_IFMT == S_IFDIR else {
                try copyFile(name, from: directory, to: path)
                continue
            }
            try make("\(path)/\(name)")
            try copyFiles(from: "\(directory)/\(name)", to: "\(path)/\(name)") { _ in true }
        }
    }

    private static func copyFile(_ name: String, from directory: String, to path: String) throws {
        do throws(SystemError) { try Files.copy("\(directory)/\(name)", to: "\(path)/\(name)") } catch {
            // A file that has disappeared was a temporary one.
            if access("\(directory)/\(name)", F_OK) != 0 { return }
            if error.number == ENOSPC || error.number == EDQUOT { throw EngineError.diskFull }
            throw BusError.failed("The file \(directory)/\(name) can't be copied: \(error).")
        }
    }

    private static func removeOld(in stateDirectory: String, _ now: UInt64) {
        for name in DirectoryListing.names(in: stateDirectory) {
            guard let time = time(of: name), time < now - min(now, longestLife) else { continue }
            try? FileManager.default.removeItem(atPath: "\(stateDirectory)/\(name)")
        }
    }
}
