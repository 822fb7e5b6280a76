// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// What takes memory in this process because others send, store or publish it, over all limits.
///
/// A limit for stores, one for remotes and one for calls each leave room for many users. Their sum doesn't, and the
/// system has one bound for the whole service (`MemoryMax=`), beyond which it ends it for everybody. So each of these
/// limits also asks here.
package final class ServiceMemory: Sendable {
    /// This process's memory.
    package static let shared = ServiceMemory()

    private let limit: SharedLimit
    private let taken = Mutex(0)

    /// Makes a count of nothing.
    /// - Parameters:
    ///   - limit: the most for all together, in bytes. Each holder may take half of what the others leave. It is a third
    ///     of `MemoryMax=`: what is counted takes up to half as much again in fact, and the message that is being read
    ///     isn't counted.
    ///   - reserve: what holders of at most 1 MiB may take beyond that.
    package init(limit: Int = 80 << 20, reserve: Int = 16 << 20) { self.limit = SharedLimit(limit, reserve: reserve) }

    /// Whether a holder that takes `own` bytes may take `bytes` more.
    package func allows(_ bytes: Int, besides own: Int) -> Bool {
        taken.withLock { allows(bytes, besides: own, of: $0) }
    }

    /// Counts bytes that are taken, or no longer taken if negative.
    package func count(_ bytes: Int) { taken.withLock { $0 += bytes } }

    /// Counts bytes if they are allowed.
    /// - Returns: whether they are.
    package func take(_ bytes: Int, besides own: Int) -> Bool {
        taken.withLock { taken in
            guard allows(bytes, besides: own, of: taken) else { return false }
            taken += bytes
            return true
        }
    }

    private func allows(_ bytes: Int, besides own: Int, of taken: Int) -> Bool {
        bytes <= 0 || limit.allows(own + bytes, beside: taken - own)
    }
}
