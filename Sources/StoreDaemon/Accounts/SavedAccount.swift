// SPDX-License-Identifier: Apache-2.0

internal import SDBus
internal import StoreBus

/// The account that a user is signed in to, as the user's files hold it over restarts.
@BusActor
final class SavedAccount {
    private let directory: String
    private let writes: FileWrites
    /// Records that the database becomes that of the account in the file.
    private(set) lazy var entering = DeathRecord(of: .entering, in: directory)
    // Kept here so that the file isn't read for each question.
    /// Whether the account in the file is encrypted.
    private(set) var isEncrypted = false
    /// Whether the file can't be read.
    private(set) var isUnreadable = false
    /// Whether values that go along into the account may not be uploaded yet.
    private(set) var bringsValues = false

    init(in directory: String, writing writes: FileWrites) {
        (self.directory, self.writes) = (directory, writes)
    }

    /// Whether a user is signed in, as far as the files say.
    var exists: Bool { AccountFile.exists(in: directory) }

    /// Reads the file; `nil` if the user is signed out.
    func read() throws -> AccountFile? { try AccountFile.read(in: directory) }

    /// Reads the file.
    /// - Throws: `NotSignedIn` if the user is signed out.
    func signedIn() throws -> AccountFile {
        guard let file = try read() else { throw UserAccount.notSignedIn }
        return file
    }

    /// Reads the file after a start, and remembers what this type says of it.
    func resume() throws -> AccountFile? {
        isUnreadable = true
        let file = try read()
        note(file)
        return file
    }

    /// Writes the file, then runs the work that belongs to it. If that fails, restores the file, also on a full disk.
    ///
    /// With this order, ``UserAccount/start(for:)`` can complete the change after a crash. If the process died in
    /// that again and again, this waits as well.
    func commit(_ file: AccountFile, _ body: () throws -> Void) throws {
        try entering.run { try replace(with: file, body) }
    }

    private func replace(with file: AccountFile, _ body: () throws -> Void) throws {
        let (former, wasUnreadable) = (try? read(), isUnreadable)
        try AccountFile.keepFormer(in: directory)
        do {
            try file.write(in: directory)
            note(file)
            try body()
        } catch {
            note(former)
            isUnreadable = wasUnreadable
            try AccountFile.restoreFormer(in: directory)
            throw error
        }
        AccountFile.forgetFormer(in: directory)
    }

    /// Changes what is in the file, without making the loop wait for the disk. Returns when the change is on the disk.
    /// - Parameters:
    ///   - change: changes what is in the file.
    ///   - apply: called once the file is replaced, before anything else can happen.
    func change(
        _ change: @escaping @BusActor (inout AccountFile) -> Void, then apply: @escaping @BusActor () -> Void = {}
    ) async throws {
        try await writes.inTurn { [self, directory, writes] in
            while true {
                let file = try signedIn()
                var next = file
                change(&next)
                if next == file {
                    note(file)
                    return apply()
                }
                try await writes.waiting { [next] in try next.prepare(in: directory) }
                // Signing in and moving write the file too, and don't wait for their turn.
                guard try read() == file else {
                    try AccountFile.removeRemains(in: directory)
                    continue
                }
                try AccountFile.takePrepared(in: directory)
                note(next)
                apply()
                return try await writes.waiting { try PrivateFile.synchronize(directory: directory) }
            }
        }
    }

    /// Changes what is in the file at once, if there is one.
    func changeAtOnce(_ change: (inout AccountFile) -> Void) throws {
        guard var file = try read() else { return }
        change(&file)
        try file.write(in: directory)
    }

    /// Removes the file.
    /// - Returns: the error, if something of it is left although the user is signed out.
    func leave() throws -> Result<Void, any Error> {
        let leaving = Result { try AccountFile.leave(in: directory) }
        // If the key can't be removed, the user is signed out all the same, and the next start tries again.
        if exists { try leaving.get() }
        note(nil)
        return leaving
    }

    private func note(_ file: AccountFile?) {
        (isEncrypted, bringsValues) = (file?.isEncrypted == true, file?.bringsValues == true)
        isUnreadable = false
    }
}
