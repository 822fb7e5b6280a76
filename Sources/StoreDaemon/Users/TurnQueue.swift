// SPDX-License-Identifier: Apache-2.0

internal import SDBus

/// Pieces of work that run one at a time, in their order.
@BusActor
final class TurnQueue {
    private var last: Task<Void, Never>?

    /// Runs a piece of work after those that were given before.
    func inTurn<T: Sendable>(_ body: @escaping @BusActor () async throws -> T) async throws -> T {
        try await withCheckedThrowingContinuation { continuation in
            let former = last
            last = EventLoop.task {
                await former?.value
                do { continuation.resume(returning: try await body()) } catch { continuation.resume(throwing: error) }
            }
        }
    }
}
