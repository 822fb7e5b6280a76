// SPDX-License-Identifier: Apache-2.0

package import Replication
internal import Synchronization

/// The memory that decoding takes, counted as the decoder learns how much it needs: a blob of a few megabytes can take
/// hundreds.
package final class DecodingMemory: Sendable {
    private let share: RemoteBudget.Share
    private let state = Mutex((bytes: 0, isRefused: false))

    /// Makes a count of nothing. It adds to ``RemoteHoldings/news``.
    package init(in share: RemoteBudget.Share) { self.share = share }

    /// Counts more, and returns whether there is room.
    @Sendable package func take(_ bytes: Int) -> Bool {
        let hasRoom = share.take(bytes)
        state.withLock { state in
            if hasRoom { state.bytes += bytes } else { state.isRefused = true }
        }
        return hasRoom
    }

    /// Takes back what was counted, because nothing of it stays.
    package func release() {
        let bytes = state.withLock { state in
            defer { state.bytes = 0 }
            return state.bytes
        }
        try? share.hold { $0.news -= bytes }
    }

    /// Takes back what was counted, because decoding has failed.
    /// - Throws: `RemoteError.unavailable` if it has for lack of room.
    package func fail() throws(RemoteError) {
        release()
        if state.withLock(\.isRefused) { throw RemoteBudget.Share.tooMuch }
    }
}
