// SPDX-License-Identifier: Apache-2.0

internal import Replication
internal import SDBus

/// The writes of a user's files that callers can cause repeatedly: one at a time, in their order. A thread of
/// ``WorkPool/disk`` waits for the disk, since the loop must not.
@BusActor
final class FileWrites {
    private let thread = WorkThread(.disk)
    private let queue = TurnQueue()

    /// Runs a piece of work after those that were given before.
    func inTurn<T: Sendable>(_ body: @escaping @BusActor () async throws -> T) async throws -> T {
        try await queue.inTurn(body)
    }

    /// Runs a piece of work that waits for the disk.
    func waiting<T: Sendable>(_ work: @escaping @Sendable () throws -> T) async throws -> T {
        try await thread.result(of: work)
    }
}
