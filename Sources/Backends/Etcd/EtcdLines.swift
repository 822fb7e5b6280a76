// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import PropertyList
internal import PropertyListFiles
internal import Replication
internal import Synchronization

/// Decodes the lines of JSON in a member's response as they arrive. The work is done on another thread than the one
/// they arrive on, because that one answers all calls.
final class EtcdLines: Sendable {
    private let thread = WorkThread(.decoding)
    private let take: @Sendable (Value?) -> Bool
    private let whenOver: @Sendable () -> Void
    /// The start of a line whose end has not arrived. One piece of work at a time uses it.
    private let line = Mutex<[UInt8]>([])
    private let state = Mutex(State())

    private struct State {
        /// The size of what has arrived and is not decoded yet.
        var waitingBytes = 0
        var isOver = false
    }

    /// When more than this is waiting to be decoded, the member has to wait.
    private static let mostWaiting = 256 << 10
    /// The memory that a piece takes besides its bytes, since a member may send them one by one.
    private static let overhead = 256
    /// More than a line with all changes that a device may have made itself while no watch was open.
    private static let longestLine = 256 << 10

    /// - Parameters:
    ///   - take: takes a message, or `nil` for a line that is too long; returns whether to continue.
    ///   - whenOver: called once `take` has returned false.
    init(_ take: @escaping @Sendable (Value?) -> Bool, whenOver: @escaping @Sendable () -> Void) {
        (self.take, self.whenOver) = (take, whenOver)
    }

    /// The sink of the response.
    var sink: HTTPRequest.Sink {
        HTTPRequest.Sink(status: 200, isBusy: { self.state.withLock { $0.waitingBytes > Self.mostWaiting } }) {
            let piece = Array($0)
            let isGood = self.state.withLock { state in
                state.waitingBytes += piece.count + Self.overhead
                return !state.isOver
            }
            if isGood { self.thread.run { self.read(piece) } }
            return isGood
        }
    }

    /// Waits until everything that has arrived is decoded.
    func finish() async { await thread.finish() }

    private func read(_ piece: [UInt8]) {
        let isOver = state.withLock(\.isOver) || !takeLines(endedBy: piece)
        let isNew = state.withLock { state in
            state.waitingBytes -= piece.count + Self.overhead
            defer { state.isOver = isOver }
            return isOver && !state.isOver
        }
        if isNew { whenOver() }
    }

    /// - Returns: whether to continue.
    private func takeLines(endedBy piece: [UInt8]) -> Bool {
        guard let lines = whole(with: piece) else { return take(nil) }
        return lines.allSatisfy { (try? JSONReader.read($0))?["result"].map(take) ?? false }
    }

    /// Returns the lines that a piece completes; `nil` if one is too long. etcd sends missed changes in one line, or in
    /// lines of a thousand each.
    private func whole(with piece: [UInt8]) -> [[UInt8]]? {
        line.withLock { line in
            // Only the new bytes are searched, since a long line may arrive byte by byte.
            var parts = piece.split(separator: UInt8(ascii: "\n"), omittingEmptySubsequences: false)
            line += parts.removeFirst()
            guard line.count <= Self.longestLine else { return nil }
            return parts.map { next in
                defer { line = Array(next) }
                return line
            }
        }
    }
}
