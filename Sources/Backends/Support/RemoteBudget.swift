// SPDX-License-Identifier: Apache-2.0

package import Replication
internal import Synchronization

/// What the accounts of all users hold in memory of what their remotes have.
///
/// Whoever may write to a remote decides how much that is, within the bounds of one account.
package final class RemoteBudget: Sendable {
    /// The process's.
    package static let shared = RemoteBudget()

    private let limit: SharedLimit
    private let held = Mutex(0)

    /// A budget in bytes, of which a sixth more is the reserve.
    package init(limit: Int = 96 << 20) { self.limit = SharedLimit(limit, reserve: limit / 6) }

    /// The part of an account that holds nothing yet.
    package func share() -> Share { Share(of: self) }

    /// Has an account hold more, or less, than before; false if there is no room for more.
    fileprivate func change(from before: Int, to after: Int) -> Bool {
        held.withLock { held in
            let others = held - before
            guard after <= before || limit.allows(after, beside: others) else { return false }
            held = others + after
            return true
        }
    }

    /// What one account holds, until it is released.
    package final class Share: Sendable {
        private let budget: RemoteBudget
        private let held = Mutex(RemoteHoldings())

        fileprivate init(of budget: RemoteBudget) { self.budget = budget }

        deinit { _ = budget.change(from: held.withLock(\.bytes), to: 0) }

        /// Changes what is held.
        /// - Throws: `RemoteError.unavailable` if there is no room for more; then it holds what it did.
        package func hold(_ change: (inout RemoteHoldings) -> Void) throws(RemoteError) {
            let hasRoom = held.withLock { held in
                var next = held
                change(&next)
                guard budget.change(from: held.bytes, to: next.bytes) else { return false }
                held = next
                return true
            }
            if !hasRoom { throw Self.tooMuch }
        }

        /// Holds more news, if there is room.
        @Sendable package func take(_ bytes: Int) -> Bool {
            do { try hold { $0.news += bytes } } catch { return false }
            return true
        }

        private static let tooMuch = RemoteError(
            .unavailable,
            "The remote holds more than the service has memory for at the moment, besides what other accounts hold. "
                + "It is tried again later.")
    }
}

/// About how many bytes an account holds in memory.
package struct RemoteHoldings {
    /// What it keeps as long as the remote names it.
    package var kept = 0
    /// What it remembers of what was read.
    package var remembered = 0
    /// What is read and not joined yet.
    package var news = 0

    fileprivate var bytes: Int { kept + remembered + news }

    /// What an entry takes beside its key and value.
    package static let entry = 256
}
