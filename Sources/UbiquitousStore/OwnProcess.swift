// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The process that the library's thread is in.
///
/// A child that was forked, and is no program of its own, has the library's memory and not its thread: whoever waited
/// there for the service would wait for ever.
enum OwnProcess {
    private static let pid = getpid()

    /// Whether the thread is there, or will be when it is needed. The first call decides which process has it.
    static var isThis: Bool { pid == getpid() }

    /// - Throws: ``UbiquitousStoreError`` in a forked child.
    static func check() throws {
        if isThis { return }
        throw UbiquitousStoreError(
            .serviceUnavailable, "A forked child can't use the store of its parent. Start a program instead.")
    }
}
