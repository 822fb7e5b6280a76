// SPDX-License-Identifier: Apache-2.0

/// What others may notice of an attack.
extension Latencies {
    /// The longest that one call of a hundred may take, whatever somebody else does, in µs.
    private static let most = 250_000.0
    /// How much longer than the baseline's these may take all the same, in µs. The kernel lets a program run for about
    /// as long before another that was woken at the same time, so less is chance.
    private static let chance = 1000.0

    /// The goal that calls of a service miss; `nil` if none.
    /// - Parameter baseline: calls of a program that stores nothing, during the same attack.
    public func flaw(comparedWithBaseline baseline: Latencies) -> String? {
        let other = baseline.permille(990)
        return flaw(than: other, atMost: max(1.5 * other, other + Self.chance), less: 0, "the baseline's is")
    }

    /// The goal that calls of a service miss; `nil` if none. What the bus itself takes longer does not count.
    /// - Parameters:
    ///   - former: calls before the attack.
    ///   - bus: calls that the bus answers, during the attack.
    ///   - before: the same before the attack.
    public func flaw(comparedWith former: Latencies, bus: Latencies, before: Latencies) -> String? {
        // A call passes the bus twice.
        let ofBus = 2 * max(0, bus.permille(990) - before.permille(990))
        let other = former.permille(990)
        return flaw(than: other, atMost: 1.5 * other, less: ofBus, "it was")
    }

    private func flaw(than other: Double, atMost most: Double, less ofBus: Double, _ words: String) -> String? {
        let p99 = permille(990)
        if count == 0 { return "others are not served" }
        if p99 > Self.most { return "others' p99 is \(Int(p99 / 1000)) ms" }
        if p99 - ofBus > most {
            return "others' p99 is \(Int(p99)) µs, and \(words) \(Int(other)) µs"
        }
        return nil
    }
}
