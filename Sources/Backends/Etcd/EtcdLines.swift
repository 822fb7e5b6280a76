// SPDX-License-Identifier: Apache-2.0

internal import HTTPClient
internal import PropertyList
internal import PropertyListFiles
internal import Replication
internal import Synchronization

/// The lines of JSON that a member tells, read while they come, away from the thread on which they come: that one answers
/// everybody's calls.
final class EtcdLines: Sendable {
    private let thread = WorkThread(.decoding)
    private let take: @Sendable (Value?) -> Bool
    private let whenOver: @Sendable () -> Void
    /// What is left of a line; used by one piece of work at a time.
    private let line = Mutex<[UInt8]>([])
    private let state = Mutex(State())

    private struct State {
        /// What has come and is not read yet takes so much.
        var waitingBytes = 0
        var isOver = false
    }

    /// When so much waits, the member waits as well.
    private static let mostWaiting = 256 << 10
    /// What a piece takes beside its bytes: a member may send them one by one.
    private static let overhead = 256
    /// More than all that a device may have written itself while nobody listened.
    private static let longestLine = 256 << 10

    /// - Parameters:
    ///   - take: takes what a line tells, or `nil` for a line that is too long; says whether it wants more.
    ///   - whenOver: called once it wants no more.
    init(_ take: @escaping @Sendable (Value?) -> Bool, whenOver: @escaping @Sendable () -> Void) {
        (self.take, self.whenOver) = (take, whenOver)
    }

    /// The answer that has lines.
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

    /// Waits until everything that has come is read.
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

    /// - Returns: whether more is wanted.
    private func takeLines(endedBy piece: [UInt8]) -> Bool {
        guard let lines = whole(with: piece) else { return take(nil) }
        return lines.allSatisfy { (try? JSONReader.read($0))?["result"].map(take) ?? false }
    }

    /// The lines that a piece ends; `nil` if one is too long. All that was missed comes in one line, or in lines of a
    /// thousand changes.
    private func whole(with piece: [UInt8]) -> [[UInt8]]? {
        line.withLock { line in
            // Only what is new is searched: a long line may come byte by byte.
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
