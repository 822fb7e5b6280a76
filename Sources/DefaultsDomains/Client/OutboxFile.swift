// SPDX-License-Identifier: Apache-2.0

// The outbox's file is $XDG_STATE_HOME/ubiquitous-store/outbox/<domain>.plist, 0600, replaced atomically. Several
// processes may change it, under a lock. The lock is a file of its own, because the outbox's file is replaced. An
// outbox of another version of this library stays for that version; this one then uses <domain>.plist.v1, which is no
// other domain's name. The file .owners tells which processes run: see OutboxOwner.

package import Files
internal import Foundation
internal import Glibc
internal import PlainText
package import PropertyList
internal import UbiquitousStore

/// The file of a domain's outbox.
package struct OutboxFile: Sendable {
    private let domain: Text
    private let directory: String
    /// The path without its extension.
    private let stem: String

    /// Returns the directory for the outboxes of the process's user; `nil` if there is none: without a home directory,
    /// and in set-user-ID programs.
    package static func standardDirectory(
        _ environment: [String: String] = ProcessInfo.processInfo.trustedEnvironment
    ) -> String? {
        guard geteuid() == getuid(), getegid() == getgid() else { return nil }
        return BaseDirectory.state.path { environment[$0] }.map { $0 + "/ubiquitous-store/outbox" }
    }

    /// Makes the file of a domain, in a directory.
    package init(domain: Text, directory: String) {
        self.domain = domain
        self.directory = directory
        stem = "\(directory)/\(Self.fileName(domain.string))"
    }

    /// Returns a domain's name in percent-encoding; if that has more than 200 bytes, the name's SHA-256.
    package static func fileName(_ domain: String) -> String {
        let name = domain.utf8.reduce(into: "") { name, byte in
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                name.unicodeScalars.append(Unicode.Scalar(byte))
            case UInt8(ascii: ".") where !name.isEmpty: name += "."
            default: name += "%" + String(byte >> 4, radix: 16) + String(byte & 0xF, radix: 16)
            }
        }
        return name.utf8.count <= 200 ? name : sha256(domain.utf8)
    }

    private var paths: [String] { [stem + ".plist", "\(stem).plist.v\(Outbox.version)"] }

    /// Whether the outbox exists.
    package var exists: Bool { paths.contains { access($0, F_OK) == 0 } }

    /// Returns the writes whose processes have ended, so that any other may deliver them.
    package func abandoned() -> [Outbox.Write] {
        let writes = read()?.writes ?? []
        let running = OutboxOwner.running(among: Set(writes.map(\.owner)), in: directory)
        return writes.filter { !running.contains($0.owner) }
    }

    /// Returns the outbox; `nil` if there is none. An unreadable file is renamed, for the user to examine.
    package func read() -> Outbox? {
        // The file is replaced as a whole, so only renaming it needs the lock. There is none if nothing can be written.
        do throws(SystemError) { return try withLock(attempts: 1) { merged(settingAside: true) } } catch {
            return merged(settingAside: false)
        }
    }

    /// Adds writes.
    /// - Parameter isRepeated: whether a write was added before, so that another process's is later that has replaced it.
    /// - Returns: whether the writes are on disk.
    @discardableResult
    package func add(
        _ writes: [Outbox.Write], isRepeated: (Outbox.Write) -> Bool = { _ in false }
    ) -> Bool {
        do throws(SystemError) {
            return try withLock { addLocked(writes, isRepeated) }
        } catch {
            let reason =
                error.number == EWOULDBLOCK ? "another process is changing them, and doesn't go on" : "\(error)"
            return complain("Settings of \(domain) can't be kept in \(directory): \(reason).")
        }
    }

    private func addLocked(_ writes: [Outbox.Write], _ isRepeated: (Outbox.Write) -> Bool) -> Bool {
        for path in paths {
            var outbox: Outbox
            switch load(path, settingAside: true) {
            case .others: continue
            case .unreadable(let reason):
                return complain("Settings of \(domain) can't be kept in \(path), which can't be read: \(reason).")
            case .none: outbox = Outbox(domain: domain)
            case .outbox(let present): outbox = present
            }
            outbox.add(writes, now: DefaultsProcess.now, isRepeated: isRepeated)
            return replace(path, by: outbox)
        }
        return false
    }

    /// Removes writes that the service has taken. Writes that were added meanwhile stay.
    /// - Throws: why they are still there.
    package func remove(_ taken: [Outbox.Write]) throws { try update(Self.removal(of: taken)) }

    private static func removal(of taken: [Outbox.Write]) -> (Outbox.Write) -> Outbox.Write? {
        let taken = Dictionary(grouping: taken, by: \.target)
        return { taken[$0.target]?.contains($0) == true ? nil : $0 }
    }

    /// Replaces each write by what a closure returns for it, or removes it.
    /// - Throws: why the outbox is as it was.
    package func update(_ body: (Outbox.Write) -> Outbox.Write?) throws(SystemError) {
        try withLock(attempts: 100) { () throws(SystemError) in
            for (path, outbox) in updated(settingAside: true, body) {
                if outbox.writes.isEmpty {
                    _ = try Files.check { unlink(path) }
                    // After a power cut it would be delivered again, over newer values.
                    try Files.synchronize(directory: directory)
                } else if !replace(path, by: outbox) {
                    throw SystemError(EIO)
                }
            }
        }
    }

    /// Returns the files that an update changes, with what they have to contain.
    private func updated(
        settingAside: Bool, _ body: (Outbox.Write) -> Outbox.Write?
    ) -> [(path: String, outbox: Outbox)] {
        paths.compactMap { path in
            guard case .outbox(let outbox) = load(path, settingAside: settingAside) else { return nil }
            var updated = Outbox(domain: domain)
            updated.add(outbox.writes.compactMap(body))
            return updated == outbox ? nil : (path, updated)
        }
    }

    // MARK: Delivery

    /// The right to deliver the outbox. It ends when this object is released or the process ends.
    package final class Delivery: Sendable {
        private let descriptor: Int32
        fileprivate init(_ descriptor: Int32) { self.descriptor = descriptor }
        deinit { close(descriptor) }
    }

    /// Returns the right to deliver; `nil` while another process has it, and if the outbox could not be removed
    /// afterwards: it would be delivered again and again, over newer values.
    package func delivery() -> Delivery? {
        guard Self.isOwn(directory, S_IFDIR), access(directory, W_OK) == 0 else { return nil }
        let descriptor = open(stem + ".delivery", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600)
        guard descriptor >= 0 else { return nil }
        let delivery = Delivery(descriptor)
        return flock(descriptor, LOCK_EX | LOCK_NB) == 0 ? delivery : nil
    }

    // MARK: Files

    /// What the path of a file ends with until it replaces the outbox.
    private static let newSuffix = ".new"

    /// In bytes: two layers of 4 MiB, and what the format adds.
    private static let maximumSize = 64 << 20

    private enum Contents {
        case none
        /// Another version's, or another domain's: a file system may ignore case.
        case others
        /// The file can't be opened or read now. It must not be replaced, because others' writes are in it.
        case unreadable(SystemError)
        case outbox(Outbox)
    }

    private func merged(settingAside: Bool) -> Outbox? {
        let outboxes = paths.compactMap { path in
            if case .outbox(let outbox) = load(path, settingAside: settingAside) { outbox } else { nil }
        }
        guard var merged = outboxes.first else { return nil }
        for outbox in outboxes.dropFirst() { merged.add(outbox.writes) }
        return merged
    }

    private func load(_ path: String, settingAside: Bool) -> Contents {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)
        // A link, which is not followed, is replaced.
        guard descriptor >= 0 else { return [ENOENT, ELOOP].contains(errno) ? .none : .unreadable(SystemError(errno)) }
        defer { close(descriptor) }
        // Only this user can write to the directory, so the file that is checked is the one that was opened.
        guard Self.isOwn(directory, S_IFDIR), Self.isOwn(path, S_IFREG) else { return .none }
        do {
            guard let bytes = try Files.read(descriptor, atMost: Self.maximumSize) else { throw SystemError(EFBIG) }
            return .outbox(try Outbox(bytes, domain: domain))
        } catch let failure as Outbox.Failure where failure.isOthers {
            return .others
        } catch let error as SystemError where error.number != EFBIG {
            return .unreadable(error)
        } catch {
            guard settingAside else { return .none }
            let kept = Self.nameForUnreadable(path)
            complain("The outbox \(path) can't be read (\(error)); it is kept as \(kept).")
            rename(path, kept)
            return .none
        }
    }

    /// Returns the name under which an unreadable file is kept: one that no other has, or the last of nine.
    private static func nameForUnreadable(_ path: String) -> String {
        let (first, last) = (path + ".unreadable", path + ".unreadable.9")
        let names = [first] + (2...8).map { "\(first).\($0)" }
        return names.first { access($0, F_OK) != 0 } ?? last
    }

    private func replace(_ path: String, by outbox: Outbox) -> Bool {
        do {
            let bytes = outbox.encoded
            guard bytes.count <= Self.maximumSize else { throw SystemError(EFBIG) }
            try Files.replace(path, with: bytes, by: path + Self.newSuffix)
            return true
        } catch {
            return complain("Settings of \(domain) can't be kept in \(path): \(error).")
        }
    }

    /// - Returns: false, for callers that return whether they succeeded.
    @discardableResult
    private func complain(_ sentence: String) -> Bool {
        logDefaults(sentence)
        return false
    }

    /// Runs `body` with the lock.
    /// - Parameter attempts: how often to try to get it, every 10 ms, while no other process changes anything: a disk may
    ///   be slow, and a process may be stopped while it has the lock.
    /// - Throws: EWOULDBLOCK if another process keeps it.
    private func withLock<T>(
        attempts: Int = 500, _ body: () throws(SystemError) -> T
    ) throws(SystemError) -> T {
        try Self.make(directory)
        let lock = try Files.check { open(stem + ".lock", O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) }
        defer { close(lock) }
        var (attempt, seen) = (1, versions)
        while flock(lock, LOCK_EX | LOCK_NB) != 0 {
            guard errno == EWOULDBLOCK || errno == EINTR, attempt < attempts else { throw SystemError(errno) }
            usleep(10_000)
            let now = versions
            (attempt, seen) = (now == seen ? attempt + 1 : 1, now)
        }
        return try body()
    }

    /// What tells each change of the files.
    private var versions: [ino_t] {
        paths.map { path in
            var status = stat()
            return stat(path, &status) == 0 ? status.st_ino : 0
        }
    }

    /// Makes the directory of outboxes, and those above it.
    /// - Throws: why there is none; also if it is another user's, because nothing may be put there.
    static func make(_ directory: String) throws(SystemError) {
        if isOwn(directory, S_IFDIR) { return }
        try Files.makeDirectories(directory)
        guard isOwn(directory, S_IFDIR) else { throw SystemError(EPERM) }
    }

    private static func isOwn(_ path: String, _ type: mode_t) -> Bool {
        var status = stat()
        return lstat(path, &status) == 0 && status.st_mode & S_IFMT == type && status.st_uid == geteuid()
    }
}

/// Writes an error to standard error, for members that can't throw.
func logDefaults(_ sentence: String) { logLine("UserDefaults: \(sentence)") }

/// Writes an error about keys, of which it names the first three.
func logDefaults(_ keys: some Collection<Text>, _ sentence: String) {
    let names = keys.sorted().prefix(3).map { "\"\($0.string.cleaned(atMost: 100))\"" }.joined(separator: ", ")
    logDefaults("\(names)\(keys.count > 3 ? " and \(keys.count - 3) more keys" : "") \(sentence)")
}
