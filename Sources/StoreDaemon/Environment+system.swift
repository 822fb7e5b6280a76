// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import StoreEngine

extension Environment {
    /// The system's clock and randomness.
    static let system = Environment(
        time: {
            var now = timespec()
            clock_gettime(CLOCK_REALTIME, &now)
            return UInt64(max(0, now.tv_sec)) * 1_000_000 + UInt64(now.tv_nsec) / 1000
        },
        random: { UInt64.random(in: .min ... .max) })
}
