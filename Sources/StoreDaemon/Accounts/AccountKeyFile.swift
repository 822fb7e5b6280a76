// SPDX-License-Identifier: Apache-2.0

// The key of a user's encrypted account on this device. It is separate from account.plist, which records that the
// account is encrypted: without a key, an account must never look unencrypted.
//
// The key is checked against the marker beside it. Otherwise a flipped bit in the secret would make the device seal
// data that no other device can open.

internal import Files
internal import Foundation
internal import Glibc
internal import Sealing

/// The file `account-key.plist`.
struct AccountKeyFile: Equatable {
    /// The stage of a move to the key.
    enum Stage: String, Codable {
        /// The account doesn't use the key yet.
        case moving
        /// The account uses the key.
        case using
    }

    /// The account's key.
    var key: AccountKey
    /// The key's marker, to restore it in the remote.
    var marker: SealedMarker
    /// The keys that the account had before. If this device has gone back to one of them, it is among them too.
    var left: Set<KeyIdentifier> = []
    /// The keys whose markers the user has rejected.
    var rejected: Set<KeyIdentifier> = []
    /// The other key whose account the user has accepted, and whose recovery phrase this device waits for.
    var awaited: KeyIdentifier?
    var stage: Stage
    /// Whether the user has seen the recovery phrase.
    var wasShown = false
    /// The identifiers that the account had while it was unencrypted.
    var wasPlain: Set<KeyIdentifier> = []
    /// When all of this device's data was found in the remote under the key, in microseconds since 1970.
    var published: UInt64?
    /// When the remains of former forms were last removed, in microseconds since 1970.
    var tidied: UInt64?
    /// The URL where the account may have been created; only in ``AttemptedKeys``.
    var place: String?
    /// Whether a move to a new key is to begin, because another key was rejected for that.
    var isToBeReplaced = false

    /// The format's number. Files with a greater one are from a newer version.
    private static let format = 1

    /// The two files: for the account that is signed in, and for one that the user is signing in to or moving to.
    enum Slot: String, CaseIterable {
        case current = "account-key.plist"
        case next = "next-account-key.plist"
    }

    private static func path(_ slot: Slot, in directory: String) -> String { directory + "/" + slot.rawValue }

    /// What a backend has to know of the key.
    var held: HeldKey {
        HeldKey(key: key, marker: marker, rejected: rejected, awaited: awaited, former: former)
    }

    /// The forms that the account had before it used this key. What is in them is removed, so this key is never one.
    var former: FormerForms {
        FormerForms(plain: wasPlain, keys: left.subtracting([key.identifier]), areRemoved: tidied != nil)
    }

    /// Whether the account is moving to the key, or has moved, but not all of this device's data is uploaded under it.
    var isMoving: Bool { stage == .moving && !former.isEmpty }

    /// How far the move to the key has come.
    var standing: MoveProgress.Standing {
        MoveProgress.Standing(
            former: former, published: stage == .using ? published : nil, wasShown: wasShown, tidied: tidied)
    }

    /// Returns the key of an account; `nil` if there is none. After a crash during signing in, the key may still be in
    /// the slot ``Slot/next``.
    static func key(of account: String, in directory: String) throws(AccountKeyFileError) -> AccountKeyFile? {
        if let next = try? read(.next, in: directory), "\(next.key.identifier)" == account { return next }
        guard let current = try read(in: directory), "\(current.key.identifier)" == account else { return nil }
        return current
    }

    /// Replaces the former account's key by that of an account that was signed in to.
    static func settle(_ account: String, in directory: String) throws {
        guard var next = try? read(.next, in: directory), "\(next.key.identifier)" == account else { return }
        // A move ends only when this device's data is in the remote.
        if next.former.isEmpty { next.stage = .using }
        try next.write(in: directory)
        try removeNext(in: directory)
    }

    /// Removes a key that won't be used.
    static func removeNext(in directory: String) throws {
        try PrivateFile.remove(path(.next, in: directory))
        try PrivateFile.synchronize(directory: directory)
    }

    /// Reads the file; `nil` if there is none.
    static func read(_ slot: Slot = .current, in directory: String) throws(AccountKeyFileError) -> AccountKeyFile? {
        try read(path(slot, in: directory))
    }

    /// Reads a file; `nil` if there is none.
    static func read(_ path: String) throws(AccountKeyFileError) -> AccountKeyFile? {
        guard let bytes = try contents(of: path) else { return nil }
        guard let version = PrivateFile.decode(Version.self, from: bytes) else { throw .damaged(path) }
        guard version.format <= format else { throw .tooNew(path) }
        guard let record = PrivateFile.decode(Record.self, from: bytes), let file = record.file else {
            throw .damaged(path)
        }
        return file
    }

    /// Replaces the file atomically, and syncs it to the disk.
    func write(_ slot: Slot = .current, in directory: String) throws {
        try write(Self.path(slot, in: directory))
    }

    /// Replaces a file atomically, and syncs it to the disk.
    func write(_ path: String) throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        try PrivateFile.replace(path, with: Array(try encoder.encode(Record(self))))
    }

    /// Removes both files, and temporary ones that a crash has left.
    static func remove(in directory: String) throws {
        for path in Slot.allCases.map({ path($0, in: directory) }) {
            try PrivateFile.remove(PrivateFile.temporary(path))
            try PrivateFile.remove(path)
        }
        try PrivateFile.synchronize(directory: directory)
    }

    /// Returns the bytes of a file, which must belong to the service's user and be private; `nil` if there is none.
    private static func contents(of path: String) throws(AccountKeyFileError) -> [UInt8]? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw .unreadable(path, errno) }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unreadable(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { throw .foreign(path) }
        guard status.st_mode & 0o077 == 0 else { throw .open(path) }
        guard let bytes = try? Files.read(descriptor, atMost: PrivateFile.largest) else { throw .damaged(path) }
        return bytes
    }

    private struct Version: Decodable {
        let format: Int
    }

    /// The contents of the file.
    private struct Record: Codable {
        var format: Int
        var identifier: String
        var secret: Data
        var marker: Data
        var left: [String]
        var rejected: [String]
        var awaited: String?
        var stage: Stage
        var wasShown: Bool
        var wasPlain: [String]?
        var published: UInt64?
        var tidied: UInt64?
        var place: String?
        var isToBeReplaced: Bool?

        init(_ file: AccountKeyFile) {
            format = AccountKeyFile.format
            identifier = "\(file.key.identifier)"
            secret = Data(file.key.secretData)
            marker = Data(file.marker.bytes)
            left = file.left.sorted().map(\.description)
            rejected = file.rejected.sorted().map(\.description)
            awaited = file.awaited?.description
            stage = file.stage
            wasShown = file.wasShown
            wasPlain = file.wasPlain.isEmpty ? nil : file.wasPlain.sorted().map(\.description)
            (published, tidied, place) = (file.published, file.tidied, file.place)
            isToBeReplaced = file.isToBeReplaced ? true : nil
        }

        /// The decoded file; `nil` if its parts contradict each other.
        var file: AccountKeyFile? {
            let (left, rejected) = (left.compactMap { KeyIdentifier($0) }, rejected.compactMap { KeyIdentifier($0) })
            let plain = (wasPlain ?? []).compactMap { KeyIdentifier($0) }
            let awaited = awaited.flatMap { KeyIdentifier($0) }
            guard format == AccountKeyFile.format, let identifier = KeyIdentifier(identifier),
                let key = AccountKey(secret: Array(secret), identifier: identifier),
                let marker = try? SealedMarker(decoding: Array(marker)), marker.isGenuine(under: key.blobs),
                left.count == self.left.count, rejected.count == self.rejected.count,
                plain.count == (wasPlain ?? []).count, (awaited == nil) == (self.awaited == nil)
            else { return nil }
            return AccountKeyFile(
                key: key, marker: marker, left: Set(left), rejected: Set(rejected), awaited: awaited, stage: stage,
                wasShown: wasShown, wasPlain: Set(plain), published: published, tidied: tidied,
                place: place, isToBeReplaced: isToBeReplaced ?? false)
        }
    }
}

/// Why the file with the account's key can't be used. It reveals nothing of the contents.
enum AccountKeyFileError: Error, Equatable, CustomStringConvertible {
    /// The file can't be opened; with `errno`.
    case unreadable(String, Int32)
    /// The file belongs to another user, or is not a regular file.
    case foreign(String)
    /// Other users may read or write the file.
    case open(String)
    /// The file is torn or was altered.
    case damaged(String)
    /// A newer version wrote the file.
    case tooNew(String)

    /// What is wrong and what to do, as a sentence.
    var description: String {
        switch self {
        case .unreadable(let path, let code):
            "The account's key can't be read from \(path) (\(String(cString: strerror(code)))). Unlock the account again."
        case .foreign(let path):
            "\(path) belongs to another user or is not a file, so it is not used. Unlock the account again."
        case .open(let path):
            "Other users may read or write \(path), so it is not used. Make it private with chmod 600, and replace the "
                + "account's key if somebody may have read it."
        case .damaged(let path):
            "\(path) is damaged. Unlock the account again with its recovery phrase."
        case .tooNew(let path):
            "\(path) was written by a newer version of this service. Install that version."
        }
    }
}
