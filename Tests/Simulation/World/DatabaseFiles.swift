// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The files of a device's database, and what a power cut would leave of them.
///
/// SQLite really writes, to a file system in memory. The model adds the kernel's part: what was written since the log
/// was last synced can be cut off anywhere, or be garbage. Nothing else needs a model, because outside a checkpoint
/// SQLite writes only to the end of the log, and it syncs the log before a checkpoint and the database after it. A
/// killed process leaves everything that it wrote.
final class DatabaseFiles {
    let directory: String
    let runtime: String
    /// How many bytes of the log are on the disk.
    private var syncedLength = 0

    private var database: String { directory + "/stores.sqlite" }
    private var log: String { database + "-wal" }

    /// The contents of the files.
    struct Image {
        var database: [UInt8]
        var log: [UInt8]
    }

    init(_ root: String) {
        directory = root + "/state"
        runtime = root + "/run"
        for path in [root, directory, runtime] { mkdir(path, 0o700) }
    }

    private var failsUntil: UInt64 = 0

    /// Makes syncs of the disk fail until a time.
    func failsToSync(until time: UInt64) { failsUntil = time }
    func canSync(at time: UInt64) -> Bool { time >= failsUntil }

    /// Notes that the log was synced.
    func noteSync() { syncedLength = Self.read(log).count }

    /// Notes that the database was closed, so that everything is in one file, which is synced.
    func noteClose() { syncedLength = 0 }

    var image: Image { Image(database: Self.read(database), log: Self.read(log)) }

    /// The contents that a power cut leaves.
    func imageAfterPowerCut(_ chance: inout Chance) -> Image {
        var image = image
        let kept = min(
            image.log.count, syncedLength + chance.below(image.log.count - min(image.log.count, syncedLength) + 1))
        let tail = kept..<image.log.count
        if chance.happens(0.5) {
            image.log.removeSubrange(tail)
        } else {
            // The length of a file can be on the disk before its content.
            for index in tail { image.log[index] = chance.happens(0.5) ? 0 : UInt8(truncatingIfNeeded: index &* 31) }
        }
        return image
    }

    /// Replaces the contents of the files, and counts them as synced. No process may have the files open.
    func write(_ image: Image) {
        unlink(database + "-shm")
        Self.write(image.database, to: database)
        if image.log.isEmpty { unlink(log) } else { Self.write(image.log, to: log) }
        syncedLength = image.log.count
    }

    /// Replaces the contents by what a killed process left. What it had not synced stays unsynced.
    func leave(_ image: Image) {
        let synced = syncedLength
        write(image)
        syncedLength = min(synced, image.log.count)
    }

    // MARK: /run

    private var record: String? {
        var status = stat()
        guard stat(directory, &status) == 0 else { return nil }
        return "\(runtime)/origin-\(status.st_dev)-\(status.st_ino)"
    }

    /// The record of the database's origin in `/run`; empty if there is none.
    var runtimeRecord: [UInt8] { record.map(Self.read) ?? [] }

    func writeRuntimeRecord(_ bytes: [UInt8]) {
        guard let record else { return }
        if bytes.isEmpty { unlink(record) } else { Self.write(bytes, to: record) }
    }

    // MARK: Files

    private static func read(_ path: String) -> [UInt8] {
        let descriptor = open(path, O_RDONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return [] }
        defer { close(descriptor) }
        var status = stat()
        guard fstat(descriptor, &status) == 0 else { return [] }
        return [UInt8](unsafeUninitializedCapacity: Int(status.st_size)) { buffer, count in
            count = max(0, Glibc.read(descriptor, buffer.baseAddress, buffer.count))
        }
    }

    private static func write(_ bytes: [UInt8], to path: String) {
        let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
        guard descriptor >= 0 else { return }
        _ = Glibc.write(descriptor, bytes, bytes.count)
        close(descriptor)
    }

    /// Makes a directory in memory for one run.
    static func makeRoot() -> String {
        rootCount += 1
        let path = "/dev/shm/simulation-\(getpid())-\(rootCount)"
        mkdir(path, 0o700)
        return path
    }
    private nonisolated(unsafe) static var rootCount = 0
    // Safe because simulations run on one thread.

    static func removeTree(_ path: String) {
        guard let directory = opendir(path) else { return }
        while let entry = readdir(directory) {
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name == "." || name == ".." { continue }
            let child = path + "/" + name
            if unlink(child) != 0 { removeTree(child) }
        }
        closedir(directory)
        rmdir(path)
    }
}
