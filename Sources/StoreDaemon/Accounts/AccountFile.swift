// SPDX-License-Identifier: Apache-2.0

internal import Files
internal import Foundation
internal import Glibc
internal import PropertyListFiles
internal import RemoteAddress
internal import Replication

/// The account that a user is signed in to, with its credentials: a file that only the service reads.
///
/// It is separate from the database, so that it survives damage to the database.
struct AccountFile: Codable, Equatable {
    /// The account's URL, without secrets.
    var url: String
    /// The account's identifier.
    var account: String
    /// The credentials for the remote.
    var credentials: BackendCredentials
    /// The name of this device in the account.
    var deviceName: String
    /// Whether the name was chosen on this device and has not been uploaded yet; `nil` means no.
    var announcesName: Bool?
    /// Whether the account is encrypted; `nil` means no. Without this, a lost key would make it look unencrypted.
    var isEncrypted: Bool?
    /// The identifier of the key that the account is moving to; the key is on the disk already.
    var movingTo: String?
    /// The identifiers that the account had before. After a crash, the database may still have one of them.
    var formerly: [String]?
    /// Whether the user has paused sync; `nil` means no.
    var isPaused: Bool?
    /// Whether this device's values go along into the account, until they are uploaded; `nil` means no. The file is
    /// written before the database.
    var bringsValues: Bool?

    /// Returns the file of the account after it has switched to a key.
    func gone(over key: String) -> AccountFile {
        var next = self
        next.rename(to: key)
        (next.isEncrypted, next.movingTo) = (true, nil)
        return next
    }

    /// Notes the account's new identifier.
    mutating func rename(to identifier: String) {
        formerly = Array(((formerly ?? []) + [account]).filter { $0 != identifier }.suffix(Self.mostFormerNames))
        account = identifier
    }

    private static let mostFormerNames = 16

    /// Whether a URL is the account's, however it is written.
    func isAt(_ other: String) -> Bool { RemoteAddress.areSame(url, other) }

    /// Whether a URL is on the server, or the servers, of the account.
    func isServer(of other: String) -> Bool { Self.isServer(of: url, other) }

    /// Whether two URLs are on the same server, or servers.
    static func isServer(of url: String, _ other: String) -> Bool { server(url) == server(other) }

    private static func server(_ url: String) -> String {
        let parts = url.split(separator: "/", maxSplits: 3, omittingEmptySubsequences: false)
        return parts.prefix(3).joined(separator: "/").lowercased()
    }

    /// The file's name.
    static let name = "account.plist"

    private static func path(in directory: String) -> String { directory + "/" + name }

    /// Whether the file exists, which means that the user is signed in.
    static func exists(in directory: String) -> Bool { access(path(in: directory), F_OK) == 0 }

    /// Reads the file; `nil` if there is none.
    static func read(in directory: String) throws(RemoteError) -> AccountFile? {
        guard exists(in: directory) else { return nil }
        let bytes = Files.bytes(of: path(in: directory), atMost: PrivateFile.largest)
        if let bytes, let file = PrivateFile.decode(AccountFile.self, from: bytes) { return file }
        throw RemoteError(
            .damaged,
            "The account can't be read, because its file \(path(in: directory)) is damaged. Sign in again at the "
                + "same address; the values on this device are kept.")
    }

    /// Replaces the file atomically, and syncs it to the disk.
    func write(in directory: String) throws {
        try PrivateFile.replace(Self.path(in: directory), with: bytes())
    }

    private func bytes() throws -> [UInt8] {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        return Array(try encoder.encode(self))
    }

    /// Writes what is to replace the file, and syncs it to the disk. It must not run on the bus's thread.
    func prepare(in directory: String) throws {
        try PrivateFile.write(Self.preparedPath(in: directory), bytes())
    }

    /// Replaces the file with what ``prepare(in:)`` has written. The directory is still to be synced.
    static func takePrepared(in directory: String) throws {
        try PrivateFile.move(preparedPath(in: directory), to: path(in: directory))
    }

    /// The path of the file that ``prepare(in:)`` writes.
    private static func preparedPath(in directory: String) -> String { path(in: directory) + ".prepared" }

    /// The former file's second name, until everything that belongs to the new one is done.
    private static func formerPath(in directory: String) -> String { path(in: directory) + ".former" }

    /// Keeps the file, if there is one, for ``restoreFormer(in:)``.
    static func keepFormer(in directory: String) throws {
        try PrivateFile.remove(formerPath(in: directory))
        if exists(in: directory) { try PrivateFile.link(path(in: directory), as: formerPath(in: directory)) }
    }

    /// Brings back the file that was kept, or signs the user out if there was none. This needs no room on the disk.
    static func restoreFormer(in directory: String) throws {
        guard access(formerPath(in: directory), F_OK) == 0 else { return try remove(in: directory) }
        // Where both are names of the same file, rename(2) leaves both.
        try PrivateFile.move(formerPath(in: directory), to: path(in: directory))
        forgetFormer(in: directory)
        try PrivateFile.synchronize(directory: directory)
    }

    /// Forgets the file that was kept. If this fails, the next start does it.
    static func forgetFormer(in directory: String) { try? PrivateFile.remove(formerPath(in: directory)) }

    /// Removes the file, which signs the user out.
    static func remove(in directory: String) throws {
        try removeRemains(in: directory)
        try PrivateFile.remove(path(in: directory))
        try PrivateFile.synchronize(directory: directory)
    }

    /// The path of the file after signing out, until the account's key is removed.
    private static func leftPath(in directory: String) -> String { path(in: directory) + ".left" }

    /// Signs out by renaming the file, which needs no room on the disk, then removes the account's key.
    static func leave(in directory: String) throws {
        guard exists(in: directory) else { return try AccountKeyFile.remove(in: directory) }
        try PrivateFile.move(path(in: directory), to: leftPath(in: directory))
        try PrivateFile.synchronize(directory: directory)
        try removeLeft(in: directory)
    }

    /// Removes the key of an account that was signed out, then the renamed file. After a crash or an error, the next
    /// call completes it.
    static func removeLeft(in directory: String) throws {
        guard access(leftPath(in: directory), F_OK) == 0 else { return }
        // If the user is signed in, the key is in use.
        if !exists(in: directory) { try AccountKeyFile.remove(in: directory) }
        try removeRemains(in: directory)
        try PrivateFile.remove(leftPath(in: directory))
        try PrivateFile.synchronize(directory: directory)
    }

    /// Removes temporary files that a crash has left, because they may contain secrets.
    static func removeRemains(in directory: String) throws {
        try PrivateFile.remove(PrivateFile.temporary(path(in: directory)))
        try PrivateFile.remove(preparedPath(in: directory))
        try PrivateFile.remove(formerPath(in: directory))
    }
}

/// Files that only the service reads.
enum PrivateFile {
    struct Failure: Error, CustomStringConvertible {
        let path: String
        let code: Int32
        var description: String { "\(path) can't be written: \(String(cString: strerror(code)))." }
    }

    /// The most bytes of a file with an account or a key.
    static let largest = 1 << 20

    /// Decodes a file that was written by this service; `nil` if it was not. A restored backup may have anything in its
    /// place.
    static func decode<Value: Decodable>(_ type: Value.Type, from bytes: [UInt8]) -> Value? {
        // Foundation's reader of XML recurses for every level, however many there are, and that of ASCII as well.
        guard bytes.starts(with: Array("bplist00".utf8)) else { return nil }
        // It copies a text for each reference to it. This reader bounds what comes of a file.
        guard (try? FileFormat.binary.read(bytes)) != nil else { return nil }
        return try? PropertyListDecoder().decode(type, from: Data(bytes))
    }

    /// The path of the temporary file that replaces a file.
    static func temporary(_ path: String) -> String { path + ".new" }

    /// Removes a file, if it exists.
    static func remove(_ path: String) throws(Failure) {
        guard unlink(path) == 0 || errno == ENOENT else { throw Failure(path: path, code: errno) }
    }

    /// Gives a file another name besides its own.
    static func link(_ path: String, as other: String) throws(Failure) {
        guard Glibc.link(path, other) == 0 else { throw Failure(path: other, code: errno) }
    }

    /// Renames a file.
    static func move(_ path: String, to other: String) throws(Failure) {
        guard rename(path, other) == 0 else { throw Failure(path: path, code: errno) }
    }

    /// Replaces a file atomically, and syncs it to the disk.
    static func replace(_ path: String, with bytes: [UInt8]) throws(Failure) {
        do throws(SystemError) { try Files.replace(path, with: bytes, by: temporary(path)) } catch {
            throw Failure(path: path, code: error.number)
        }
    }

    /// Writes a file, and syncs it to the disk. A crash may leave it incomplete, or without a name.
    static func write(_ path: String, _ bytes: [UInt8]) throws(Failure) {
        do throws(SystemError) { try Files.write(path, bytes) } catch {
            throw Failure(path: path, code: error.number)
        }
    }

    static func synchronize(directory: String) throws(Failure) {
        do throws(SystemError) { try Files.synchronize(directory: directory) } catch {
            throw Failure(path: directory, code: error.number)
        }
    }
}
