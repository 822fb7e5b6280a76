// SPDX-License-Identifier: Apache-2.0

internal import Foundation

/// The memory that a process shares with no other, and that is not in a file.
public enum ProcessMemory {
    /// `Private_Dirty`, in KiB; `nil` if the process is gone.
    public static func privateDirty(of pid: Int32) -> Int? {
        guard let text = try? String(contentsOfFile: "/proc/\(pid)/smaps_rollup", encoding: .utf8) else { return nil }
        let line = text.split(separator: "\n").first { $0.hasPrefix("Private_Dirty:") }
        return line.flatMap { $0.split(separator: " ").dropFirst().first }.flatMap { Int($0) }
    }
}
