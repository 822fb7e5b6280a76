// SPDX-License-Identifier: Apache-2.0

package import Foundation
internal import Glibc

/// A temporary directory that all users may enter. It is removed when this object is released or this process ends.
public final class TemporaryDirectory: Sendable {
    /// The directory's path.
    public let path: String

    /// Makes a directory.
    /// - Throws: `CocoaError` if it can't be made.
    public init() throws {
        var template = Array((NSTemporaryDirectory() + "/ubiquitous-store-XXXXXX").utf8CString)
        guard mkdtemp(&template) != nil else { throw CocoaError(.fileWriteUnknown) }
        path = String(decoding: template.dropLast().map(UInt8.init(bitPattern:)), as: UTF8.self).replacing(
            "//",
            with: "/"
        )
        ProcessReaper.note(directory: path)
        // Services and clients of other users use it too.
        chmod(path, 0o755)
    }

    deinit {
        // Don't delete the contents of a mount that a test forgot.
        for mount in mounts.reversed() { umount2(mount, Int32(MNT_DETACH)) }
        try? FileManager.default.removeItem(atPath: path)
    }

    private var mounts: [String] {
        let table = (try? String(contentsOfFile: "/proc/self/mounts", encoding: .utf8)) ?? ""
        return table.split(separator: "\n").compactMap { line in
            let place = line.split(separator: " ").dropFirst().first.map(String.init) ?? ""
            return place.hasPrefix(path + "/") ? place : nil
        }
    }

    /// Makes a directory in it.
    /// - Returns: its path.
    /// - Throws: `CocoaError` if it can't be made.
    public func makeDirectory(_ name: String, mode: UInt32 = 0o755, owner: UInt32? = nil) throws -> String {
        let directory = "\(path)/\(name)"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        chmod(directory, mode)
        if let owner { chown(directory, owner, gid_t.max) }
        return directory
    }

    /// Mounts a small file system on a directory in it; for root.
    /// - Throws: ``StartFailure`` without the right to mount.
    public func mountSmallDisk(_ name: String, bytes: Int, owner: UInt32? = nil) throws -> String {
        let directory = try makeDirectory(name)
        ProcessReaper.note(mount: directory)
        guard mount("tmpfs", directory, "tmpfs", 0, "size=\(bytes),mode=0700,uid=\(owner ?? geteuid())") == 0 else {
            throw StartFailure(description: "A tmpfs can't be mounted: \(String(cString: strerror(errno)))")
        }
        return directory
    }
}

extension FileManager {
    /// Removes everything in a directory.
    package func removeContents(ofDirectory path: String) throws {
        // A directory stays if a service writes to it while it is being removed.
        for _ in 0..<9 {
            do { return try removeOnce(contentsOf: path) } catch {}
        }
        try removeOnce(contentsOf: path)
    }

    private func removeOnce(contentsOf path: String) throws {
        for name in try contentsOfDirectory(atPath: path) { try removeItem(atPath: path + "/" + name) }
    }
}
