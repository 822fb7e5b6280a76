// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The process that runs the library's thread.
///
/// A child that forked without exec has the library's memory but not its thread, so waiting for the service there would
/// never end.
package enum OwnProcess {
    private static let pid = getpid()

    /// Whether this process has the thread, or will when it is needed. The process of the first call gets it.
    package static var isThis: Bool { pid == getpid() }

    /// - Throws: ``UbiquitousStoreError`` in a forked child.
    static func check() throws {
        if isThis { return }
        throw UbiquitousStoreError(
            .serviceUnavailable, "A forked child can't use the store of its parent. Start a program instead.")
    }
}
