// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The type of a directory's filesystem.
enum Mount {
    /// Local filesystems, where inotify(7) reports every change.
    private static let local: Set<String> = [
        "ext2", "ext3", "ext4", "xfs", "btrfs", "tmpfs", "f2fs", "overlay", "zfs", "bcachefs",
    ]

    /// Whether only this machine can change a directory.
    static func isLocal(_ directory: borrowing FileDescriptor) -> Bool {
        guard let info = read("/proc/self/fdinfo/\(directory.number)"), let identifier = field("mnt_id:", of: info),
            let mounts = read("/proc/self/mountinfo"), let type = type(ofMount: identifier, in: mounts)
        else { return false }
        return local.contains(type)
    }

    /// The type is the first field after the lone dash; see proc_pid_mountinfo(5).
    static func type(ofMount identifier: String, in mounts: String) -> String? {
        for line in mounts.split(separator: "\n") where line.hasPrefix(identifier + " ") {
            let fields = line.split(separator: " ")
            guard let dash = fields.firstIndex(of: "-"), dash + 1 < fields.endIndex else { return nil }
            return String(fields[dash + 1])
        }
        return nil
    }

    private static func field(_ name: String, of info: String) -> String? {
        for line in info.split(separator: "\n") where line.hasPrefix(name) {
            return line.dropFirst(name.count).split(whereSeparator: \.isWhitespace).first.map(String.init)
        }
        return nil
    }

    private static func read(_ path: String) -> String? {
        let number = open(path, O_RDONLY | O_CLOEXEC)
        guard number >= 0 else { return nil }
        let file = FileDescriptor(owning: number)
        do {
            return try file.read(atMost: 4 << 20).map { String(decoding: $0, as: UTF8.self) }
        } catch {
            return nil
        }
    }
}
