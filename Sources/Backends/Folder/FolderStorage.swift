// SPDX-License-Identifier: Apache-2.0

// Blobs as files. Each operation opens the folder by its path and checks it again: the folder may be on a removable
// drive, and the service must not keep it from being unmounted. Between two checks, an operation fails if the folder is
// on another device than at the first.
//
// A file is written under a name with a dot, synced and renamed, so that readers see all of it or nothing.

internal import BackendSupport
package import Blobs
internal import Files
internal import Glibc
package import Replication
internal import Synchronization

/// The storage of an account in a folder.
package actor FolderStorage: BlobStorage {
    private let url: FolderURL
    private let access: FolderAccess
    private let executor: ThreadExecutor
    private nonisolated let watch: FolderWatch?
    private nonisolated let givesHints = Atomic(false)
    /// Seconds since 1970.
    private let now: @Sendable () -> Int
    /// The device that the folder was on at the last check.
    private var device: dev_t?
    /// The device that the account was on.
    private var home: dev_t?

    /// Blocking calls run on this executor.
    package nonisolated var unownedExecutor: UnownedSerialExecutor { executor.asUnownedSerialExecutor() }

    /// Makes a folder's storage, without accessing the folder.
    /// - Parameters:
    ///   - watch: watches for changes, which ``BackendCheck`` doesn't need.
    ///   - now: seconds since 1970, by the clock of the filesystem's timestamps.
    init(
        _ url: FolderURL, access: FolderAccess, watch: FolderWatch? = FolderWatch(),
        now: @escaping @Sendable () -> Int = { time(nil) }
    ) {
        self.now = now
        self.url = url
        self.access = access
        executor = ThreadExecutor(.folders, owner: access.uid)
        executor.place = url.path
        self.watch = watch
    }

    deinit { watch?.close() }

    /// The user whose folder it is.
    nonisolated var owner: UInt32 { access.uid }

    /// The mount point of the folder's file system, which limits the threads that work there. Until it is known, and if
    /// the table of mounts is too large, the folder counts as one.
    nonisolated var mount: String { executor.place ?? url.path }

    /// Finds the mount point.
    func findMount() { executor.place = MountTable.current.mount(of: url.path)?.point ?? url.path }

    /// Changes are coalesced for a second, because the software that replicates the files takes at least that long.
    package nonisolated var traits: BackendTraits {
        BackendTraits(
            coalescing: .seconds(1), givesHints: givesHints.load(ordering: .relaxed),
            replicatesSeparately: true)
    }

    /// Hints when another process has changed something.
    package nonisolated func hints() -> AsyncStream<Void> {
        watch?.hints() ?? AsyncStream { $0.finish() }
    }

    /// Ends the hints.
    package nonisolated func close() {
        givesHints.store(false, ordering: .relaxed)
        watch?.close()
    }

    /// Checks again that the folder exists and may be used.
    package func check(creatingFolder createsFolder: Bool) async throws(RemoteError) -> [String] {
        device = nil
        let folder = try access.open(url, creatingFolder: createsFolder)
        device = folder.device
        if createsFolder {
            for name in [BlobName.markers, BlobName.heads, BlobName.segments] {
                _ = try subfolder(name, in: folder, making: true)
            }
        }
        try checkDrive(of: folder)
        let isWatched = try watchFolders(in: folder)
        givesHints.store(isWatched && Mount.isLocal(folder.directory), ordering: .relaxed)
        return folder.notes
    }

    /// Refuses an empty folder on another device: a mount point without its drive. The account is not gone.
    private func checkDrive(of folder: borrowing OpenFolder) throws(RemoteError) {
        if try subfolder(BlobName.markers, in: folder, making: false) != nil {
            home = folder.device
        } else if let home, home != folder.device {
            throw RemoteError(
                .unavailable, "\(folder.path) is empty and on another device than before: is its drive mounted?")
        }
    }

    private func watchFolders(in folder: borrowing OpenFolder) throws(RemoteError) -> Bool {
        guard let watch else { return false }
        for name in [BlobName.heads, BlobName.segments] {
            guard let subfolder = try subfolder(name, in: folder, making: false), watch.watch(name, subfolder) else {
                return false
            }
        }
        return true
    }

    // MARK: Reading

    /// The names in a folder that may be blobs, with versions.
    package func list(_ name: String) async throws(RemoteError) -> [BlobListing] {
        let folder = try openAgain()
        guard let directory = try subfolder(name, in: folder, making: false) else { return [] }
        return try naming("\(folder.path)/\(name)") { () throws(SystemError) in
            let names = try directory.names(atMost: BlobName.mostListed) { BlobName.mayBeOurs($0) }
            // Only heads change, so only their versions are useful.
            guard name == BlobName.heads else { return names.map { BlobListing(name: $0) } }
            return names.map { BlobListing(name: $0, version: version(of: $0, in: directory)) }
        }
    }

    /// Reads a file. Its times decide nothing but whether to read it again.
    package func get(_ name: String, limit: Int, unless version: String?) async throws(RemoteError) -> BlobContent {
        let folder = try openAgain()
        let blob = Self.split(name)
        guard let directory = try subfolder(blob.folder, in: folder, making: false) else { return .absent }
        do throws(SystemError) {
            if let version, version == self.version(of: blob.name, in: directory) { return .unchanged }
            return try read(blob.name, in: directory, limit: limit)
        } catch {
            switch error.number {
            case ENOENT: return .absent
            case EACCES, EPERM, ELOOP, ENXIO: return .unreadable("can't be read: \(error.description)")
            default: throw RemoteError(error, at: "\(folder.path)/\(name)")
            }
        }
    }

    private func version(of name: String, in directory: borrowing FileDescriptor) -> String? {
        (try? directory.status(of: name)).flatMap { $0.version(now: now()) }
    }

    private func read(
        _ name: String,
        in directory: borrowing FileDescriptor,
        limit: Int
    ) throws(SystemError) -> BlobContent {
        // Anything else isn't even opened, because opening a device can have effects.
        guard try directory.status(of: name).isFile else { return .unreadable("is not a file") }
        let file = try directory.open(name, O_RDONLY)
        let status = try file.status()
        guard status.isFile else { return .unreadable("is not a file") }
        guard status.st_size <= limit, let bytes = try file.read(atMost: limit) else {
            return .unreadable("is too large")
        }
        return .content(bytes, version: status.version(now: now()))
    }

    // MARK: Writing

    /// Replaces a file.
    package func put(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        try write(name, bytes) { (directory, temporary, target) throws(SystemError) in
            try directory.rename(temporary, to: target)
        }
    }

    /// Writes a file, unless the name exists.
    package func create(_ name: String, _ bytes: [UInt8]) async throws(RemoteError) {
        let mode = access.fileMode
        try write(name, bytes) { (directory, temporary, target) throws(SystemError) in
            do throws(SystemError) { try directory.link(temporary, to: target) } catch {
                // FAT and some servers have no links. Then readers may see the file before it is whole.
                guard [EPERM, EMLINK, ENOSYS, ENOTSUP].contains(error.number) else { throw error }
                let file = try directory.open(target, O_WRONLY | O_CREAT | O_EXCL, mode: mode)
                do throws(SystemError) {
                    try file.write(bytes)
                    try file.synchronize()
                } catch {
                    try directory.remove(target)
                    throw error
                }
            }
            try directory.remove(temporary)
        }
    }

    /// Removes a file.
    package func delete(_ name: String) async throws(RemoteError) {
        let folder = try openAgain()
        let blob = Self.split(name)
        guard let directory = try subfolder(blob.folder, in: folder, making: false) else { return }
        do throws(SystemError) {
            try announcing(name) { () throws(SystemError) in try directory.remove(blob.name) }
            try directory.synchronize()
        } catch {
            if error.number != ENOENT { throw RemoteError(error, at: "\(folder.path)/\(name)") }
        }
    }

    /// Writes a file under a temporary name and moves it into place.
    private func write(
        _ name: String,
        _ bytes: [UInt8],
        place: (borrowing FileDescriptor, String, String) throws(SystemError) -> Void
    ) throws(RemoteError) {
        let folder = try openAgain()
        let blob = Self.split(name)
        let path = "\(folder.path)/\(name)"
        guard let directory = try subfolder(blob.folder, in: folder, making: true) else {
            throw RemoteError(.unavailable, "\(path) can't be written now.")
        }
        let temporary = ".\(blob.name).\(UInt64.random(in: .min ... .max).hexDigits).tmp"
        do throws(SystemError) {
            try writeWhole(temporary, bytes, in: directory)
            try announcing(name) { () throws(SystemError) in try place(directory, temporary, blob.name) }
            try directory.synchronize()
        } catch {
            do { try directory.remove(temporary) } catch {}
            throw RemoteError(error, at: path)
        }
    }

    private func writeWhole(
        _ name: String,
        _ bytes: [UInt8],
        in directory: borrowing FileDescriptor
    ) throws(SystemError) {
        let file = try directory.open(name, O_WRONLY | O_CREAT | O_EXCL, mode: access.fileMode)
        try file.write(bytes)
        try file.synchronize()
    }

    private func announcing(_ name: String, _ body: () throws(SystemError) -> Void) throws(SystemError) {
        if let watch { try watch.expecting(name, body) } else { try body() }
    }

    // MARK: Parts

    /// Opens the folder that the last check found.
    private func openAgain() throws(RemoteError) -> OpenFolder {
        let folder = try access.open(url, creatingFolder: false)
        guard folder.device == device else {
            throw RemoteError(.unavailable, "\(folder.path) is on another device than a moment ago.")
        }
        return folder
    }

    /// Opens a subfolder; `nil` if it is missing and shouldn't be created. The empty name is the folder itself.
    private func subfolder(
        _ name: String,
        in folder: borrowing OpenFolder,
        making makes: Bool
    ) throws(RemoteError) -> FileDescriptor? {
        do throws(SystemError) {
            return try folder.directory.openDirectory(name.isEmpty ? "." : name)
        } catch {
            guard error.number == ENOENT else { throw RemoteError(error, at: "\(folder.path)/\(name)") }
        }
        guard makes else { return nil }
        do throws(SystemError) {
            do { try folder.directory.makeDirectory(name, mode: access.directoryMode) } catch {
                if error.number != EEXIST { throw error }
            }
            try folder.directory.synchronize()
            return try folder.directory.openDirectory(name)
        } catch {
            throw RemoteError(error, at: "\(folder.path)/\(name)")
        }
    }

    private static func split(_ name: String) -> (folder: String, name: String) {
        let parts = name.split(separator: "/", maxSplits: 1).map(String.init)
        return parts.count == 2 ? (parts[0], parts[1]) : ("", name)
    }
}

extension stat {
    fileprivate var isFile: Bool { st_mode & S_IFMT == S_IFREG }

    /// A version that changes whenever the file is replaced or written. Filesystems give equal timestamps to changes
    /// within some milliseconds, some within two seconds, so a file that new has no version.
    fileprivate func version(now: Int) -> String? {
        // The filesystem may be hostile and return any time.
        let (age, overflow) = now.subtractingReportingOverflow(st_ctim.tv_sec)
        guard age > 2, !overflow else { return nil }
        return "\(st_ino) \(st_size) \(st_mtim.tv_sec).\(st_mtim.tv_nsec) \(st_ctim.tv_sec).\(st_ctim.tv_nsec)"
    }
}
