// SPDX-License-Identifier: Apache-2.0

// The key of a user's encrypted account on this device. It is apart from account.plist, which keeps that the account
// is encrypted: a lost key must never make an account look as if it were in plain.
//
// What is read is checked against the marker that is kept beside the key: a file with a bit flipped in the secret
// would otherwise have the device seal what no other device can open.

internal import Foundation
internal import Glibc
internal import Sealing

/// The file `account-key.plist`.
struct AccountKeyFile: Equatable {
    /// How far a move to the key has come.
    enum Stage: String, Codable {
        /// The key is not the account's yet.
        case moving
        /// The key is the account's.
        case using
    }

    /// The account's key.
    var key: AccountKey
    /// The key's marker, for a remote that has lost it.
    var marker: SealedMarker
    /// The keys that this device had before.
    var left: Set<KeyIdentifier> = []
    /// The markers that the user has rejected.
    var rejected: Set<KeyIdentifier> = []
    /// The key whose account the user has taken for right, and whose words are not here.
    var awaited: KeyIdentifier?
    var stage: Stage
    /// The user has seen the recovery phrase.
    var wasShown = false
    /// What the account was called while it was in plain.
    var wasPlain: Set<KeyIdentifier> = []
    /// When it was found that what this device has is in the remote under the key, in microseconds since 1970.
    var published: UInt64?
    /// When what is left of former forms was removed last.
    var tidied: UInt64?

    /// A file is in this format, and in none that is greater.
    private static let format = 1
    /// No file is longer.
    private static let limit = 1 << 20

    /// Which of the two files: that of the account that is signed in, or of one that is being signed in to.
    enum Slot: String, CaseIterable {
        case current = "account-key.plist"
        case next = "next-account-key.plist"
    }

    private static func path(_ slot: Slot, in directory: String) -> String { directory + "/" + slot.rawValue }

    /// What a backend is to know.
    var held: HeldKey {
        HeldKey(key: key, marker: marker, rejected: rejected, awaited: awaited, former: former)
    }

    /// The forms in which the account was before it was under this key.
    var former: FormerForms { FormerForms(plain: wasPlain, keys: left, areRemoved: tidied != nil) }

    /// How far a move to the key has come.
    var standing: MoveProgress.Standing {
        MoveProgress.Standing(
            former: former, published: stage == .using ? published : nil, wasShown: wasShown, tidied: tidied)
    }

    /// The key of an account; `nil` where there is none. A crash while the account was being signed in to may have
    /// left it where keys of such accounts are.
    static func key(of account: String, in directory: String) throws(AccountKeyFileError) -> AccountKeyFile? {
        if let next = try? read(.next, in: directory), "\(next.key.identifier)" == account { return next }
        guard let current = try read(in: directory), "\(current.key.identifier)" == account else { return nil }
        return current
    }

    /// Puts the key of an account that was signed in to in the place of the former one's.
    static func settle(_ account: String, in directory: String) throws {
        guard var next = try? read(.next, in: directory), "\(next.key.identifier)" == account else { return }
        // A move ends when what this device has is in the remote.
        if next.former.areNone { next.stage = .using }
        try next.write(in: directory)
        try removeNext(in: directory)
    }

    /// Removes a key that is not going to be used.
    static func removeNext(in directory: String) throws {
        try PrivateFile.remove(path(.next, in: directory))
        try PrivateFile.synchronize(directory: directory)
    }

    /// Reads the file; `nil` where there is none.
    static func read(_ slot: Slot = .current, in directory: String) throws(AccountKeyFileError) -> AccountKeyFile? {
        let path = path(slot, in: directory)
        guard let data = try contents(of: path) else { return nil }
        let decoder = PropertyListDecoder()
        guard let version = try? decoder.decode(Version.self, from: data) else { throw .damaged(path) }
        guard version.format <= format else { throw .tooNew(path) }
        guard let record = try? decoder.decode(Record.self, from: data), let file = record.file else {
            throw .damaged(path)
        }
        return file
    }

    /// Writes the file, whole or not at all, and so that a power cut does not take it away.
    func write(_ slot: Slot = .current, in directory: String) throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        try PrivateFile.replace(Self.path(slot, in: directory), with: Array(try encoder.encode(Record(self))))
    }

    /// Removes the files, and what a crash has left of one that was being written.
    static func remove(in directory: String) throws {
        for path in Slot.allCases.map({ path($0, in: directory) }) {
            try PrivateFile.remove(PrivateFile.temporary(path))
            try PrivateFile.remove(path)
        }
        try PrivateFile.synchronize(directory: directory)
    }

    /// The bytes of a file that belongs to this user and that no other may read; `nil` where there is none.
    private static func contents(of path: String) throws(AccountKeyFileError) -> Data? {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        if descriptor < 0, errno == ENOENT { return nil }
        guard descriptor >= 0 else { throw .unreadable(path, errno) }
        let handle = FileHandle(fileDescriptor: descriptor, closeOnDealloc: true)
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { throw .unreadable(path, errno) }
        guard status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else { throw .foreign(path) }
        guard status.st_mode & 0o077 == 0 else { throw .open(path) }
        guard status.st_size <= limit, let data = try? handle.read(upToCount: limit) else { throw .damaged(path) }
        return data
    }

    private struct Version: Decodable {
        let format: Int
    }

    /// What is in the file.
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
            (published, tidied) = (file.published, file.tidied)
        }

        /// What it says; `nil` if it does not agree with itself.
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
                wasShown: wasShown, wasPlain: Set(plain), published: published, tidied: tidied)
        }
    }
}

/// Why the file with the account's key can't be used. It has nothing of what is in the file.
enum AccountKeyFileError: Error, Equatable, CustomStringConvertible {
    /// It can't be opened; `errno`.
    case unreadable(String, Int32)
    /// It is another user's, or no file.
    case foreign(String)
    /// Others may read or write it.
    case open(String)
    /// It is torn, or was altered.
    case damaged(String)
    /// A newer version has written it.
    case tooNew(String)

    /// A sentence that says what is wrong and what to do.
    var description: String {
        switch self {
        case .unreadable(let path, let code):
            "The account's key can't be read from \(path) (\(String(cString: strerror(code)))). Unlock the account again."
        case .foreign(let path):
            "\(path) belongs to another user or is no file, so it is not used. Remove it and unlock the account again."
        case .open(let path):
            "Other users may read or write \(path), so it is not used. Make it private with chmod 600, and replace the "
                + "account's key if somebody may have read it."
        case .damaged(let path):
            "\(path) is damaged. Remove it and unlock the account again with its recovery phrase."
        case .tooNew(let path):
            "\(path) was written by a newer version of this service. Install that version."
        }
    }
}
