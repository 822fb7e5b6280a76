// SPDX-License-Identifier: Apache-2.0

package import Replication
internal import Synchronization

/// Limits how much of their remotes' content the accounts of all users hold in memory.
///
/// Anyone who may write to a remote decides how much that is, within the limits of one account.
package final class RemoteBudget: Sendable {
    /// The process's budget.
    package static let shared = RemoteBudget(within: .shared)

    private let limit: SharedLimit
    private let service: ServiceMemory
    private let held = Mutex(0)

    /// Makes a budget in bytes, with a reserve of a sixth more for small accounts.
    /// - Parameter service: what accounts share with everything else.
    package init(limit: Int = 96 << 20, within service: ServiceMemory = ServiceMemory()) {
        self.limit = SharedLimit(limit, reserve: limit / 6)
        self.service = service
    }

    /// Makes the share of an account that holds nothing yet.
    package func share() -> Share { Share(of: self) }

    /// Changes how many bytes an account holds. Returns false, and changes nothing, if there is no room for more.
    fileprivate func change(from before: Int, to after: Int) -> Bool {
        held.withLock { held in
            let others = held - before
            guard after <= before || limit.allows(after, beside: others),
                service.take(after - before, besides: before)
            else { return false }
            held = others + after
            return true
        }
    }

    /// What one account holds, until the share is released.
    package final class Share: Sendable {
        private let budget: RemoteBudget
        private let held = Mutex(RemoteHoldings())

        fileprivate init(of budget: RemoteBudget) { self.budget = budget }

        deinit { _ = budget.change(from: held.withLock(\.bytes), to: 0) }

        /// Changes what the account holds.
        /// - Throws: `RemoteError.unavailable` if there is no room for more; then nothing changes.
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

        /// What of ``RemoteHoldings/news`` it holds now.
        package var news: Int { held.withLock(\.news) }

        /// Adds to ``RemoteHoldings/news``, and returns whether there was room.
        @Sendable package func take(_ bytes: Int) -> Bool {
            do { try hold { $0.news += bytes } } catch { return false }
            return true
        }

        static let tooMuch = RemoteError(
            .unavailable,
            "The service has no memory to spare for this remote's data, because other accounts hold the rest. "
                + "It retries later.")
    }
}

/// The approximate number of bytes that an account holds in memory.
package struct RemoteHoldings {
    /// The bytes of what it keeps as long as it is in the remote.
    package var kept = 0
    /// The bytes of what it caches of what was read.
    package var remembered = 0
    /// The bytes of what was read and is not joined yet.
    package var news = 0

    fileprivate var bytes: Int { kept + remembered + news }

    /// The bytes that an entry takes besides its key and value.
    package static let entry = 256
}
