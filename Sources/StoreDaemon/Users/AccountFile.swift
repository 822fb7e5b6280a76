// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Foundation
internal import Glibc

/// What a user is signed in to, with its secrets: a file of its own, which only the service reads.
///
/// It is apart from the database so that it is still there when that is damaged.
struct AccountFile: Codable, Equatable {
    /// The address of the account's place, without secrets.
    var url: String
    /// The account's identifier.
    var account: String
    /// What the place asks for.
    var credentials: BackendCredentials
    /// What this device is called there.
    var deviceName: String
    /// The name was chosen on this device, and the account does not have it yet.
    var announcesName: Bool?
    /// The account is encrypted. It is kept apart from the key: without that nothing is written, least of all in plain.
    var isEncrypted: Bool?
    /// The account is moving to the key of this identifier, which is on the disk already.
    var movingTo: String?
    /// What the account was called before it moved to its key. The database follows the file.
    var formerly: [String]?
    /// The user has paused sync.
    var isPaused: Bool?

    /// The file after the account went over to a key.
    func gone(over key: String) -> AccountFile {
        var next = self
        next.formerly = Array(((formerly ?? []) + [account]).filter { $0 != key }.suffix(Self.mostFormerNames))
        (next.account, next.isEncrypted, next.movingTo) = (key, true, nil)
        return next
    }

    private static let mostFormerNames = 16

    /// Whether an address is that of the account, with or without slashes at the end.
    func isPlace(_ other: String) -> Bool { Self.trimmed(url) == Self.trimmed(other) }

    /// Whether an address is of the server, or the servers, that the account is on.
    func isServer(of other: String) -> Bool { Self.isServer(of: url, other) }

    /// Whether two addresses are of one server, or the same servers.
    static func isServer(of url: String, _ other: String) -> Bool { server(url) == server(other) }

    private static func trimmed(_ url: String) -> Substring {
        url[..<(url.lastIndex { $0 != "/" }.map(url.index(after:)) ?? url.startIndex)]
    }

    private static func server(_ url: String) -> String {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.prefix(3).joined(separator: "/").lowercased()
    }

    private static func path(in directory: String) -> String { directory + "/account.plist" }

    /// Whether there is one: then the user is signed in.
    static func exists(in directory: String) -> Bool { access(path(in: directory), F_OK) == 0 }

    /// Reads the file; `nil` where there is none.
    static func read(in directory: String) throws -> AccountFile? {
        guard exists(in: directory) else { return nil }
        let data = try Data(contentsOf: URL(filePath: path(in: directory)))
        return try PropertyListDecoder().decode(AccountFile.self, from: data)
    }

    /// Writes the file, whole or not at all, and so that a power cut does not take it away.
    func write(in directory: String) throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let data = try encoder.encode(self)
        try PrivateFile.replace(Self.path(in: directory), with: Array(data))
    }

    /// Removes the file: the user is signed out.
    static func remove(in directory: String) throws {
        try removeRemains(in: directory)
        try PrivateFile.remove(path(in: directory))
        try PrivateFile.synchronize(directory: directory)
    }

    /// Where the file is of an account that was signed out, until the account's key is gone.
    private static func leftPath(in directory: String) -> String { path(in: directory) + ".left" }

    /// Signs out: there is no account any more, and what it leaves behind is known. It takes no room on the disk.
    static func leave(in directory: String) throws {
        guard exists(in: directory) else { return try AccountKeyFile.remove(in: directory) }
        try PrivateFile.move(path(in: directory), to: leftPath(in: directory))
        try PrivateFile.synchronize(directory: directory)
        try removeLeft(in: directory)
    }

    /// Removes what an account that was signed out has left: its key, and then the file that says so. A crash, or an
    /// error, in between is made up for when this is called the next time.
    static func removeLeft(in directory: String) throws {
        guard access(leftPath(in: directory), F_OK) == 0 else { return }
        // The key of an account that is signed in stays.
        if !exists(in: directory) { try AccountKeyFile.remove(in: directory) }
        try removeRemains(in: directory)
        try PrivateFile.remove(leftPath(in: directory))
        try PrivateFile.synchronize(directory: directory)
    }

    /// Removes what a crash has left of a file that was being written: it may have secrets in it.
    static func removeRemains(in directory: String) throws {
        try PrivateFile.remove(PrivateFile.temporary(path(in: directory)))
    }
}

/// Files that only the service reads.
enum PrivateFile {
    struct Failure: Error, CustomStringConvertible {
        let path: String
        let code: Int32
        var description: String { "\(path) can't be written: \(String(cString: strerror(code)))." }
    }

    /// Where a file is written before it is put in place.
    static func temporary(_ path: String) -> String { path + ".new" }

    /// Removes a file, if it is there.
    static func remove(_ path: String) throws(Failure) {
        guard unlink(path) == 0 || errno == ENOENT else { throw Failure(path: path, code: errno) }
    }

    /// Gives a file another name.
    static func move(_ path: String, to other: String) throws(Failure) {
        guard rename(path, other) == 0 else { throw Failure(path: path, code: errno) }
    }

    /// Puts a file in place, whole or not at all, so that it survives a power cut.
    static func replace(_ path: String, with bytes: [UInt8]) throws(Failure) {
        do throws(SystemError) { try Files.replace(path, with: bytes, by: temporary(path)) } catch {
            throw Failure(path: path, code: error.number)
        }
    }

    static func synchronize(directory: String) throws(Failure) {
        do throws(SystemError) { try Files.synchronize(directory: directory) } catch {
            throw Failure(path: directory, code: error.number)
        }
    }
}
