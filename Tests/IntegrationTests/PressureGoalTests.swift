// SPDX-License-Identifier: Apache-2.0

import PressureTesting
import Testing

/// When `script/pressure` says that others wait too long.
struct PressureGoalTests {
    /// A hundred calls, of which the second slowest takes so many µs.
    private func calls(_ p99: Int) -> Latencies {
        var latencies = Latencies()
        for _ in 0..<98 { latencies.add(.microseconds(100)) }
        for duration in [p99, 2 * p99] { latencies.add(.microseconds(duration)) }
        return latencies
    }

    @Test(arguments: [
        (2000, 2500, true), (2000, 3500, false), (4000, 5500, true), (4000, 6500, false),
        // Less than a millisecond is chance.
        (200, 1000, true), (200, 1500, false),
    ])
    func `calls may take half as long again as the baseline's, or a millisecond longer`(
        baseline: Int, service: Int, isEnough: Bool
    ) {
        let flaw = calls(service).flaw(comparedWithBaseline: calls(baseline))
        #expect((flaw == nil) == isEnough)
    }

    @Test func `nobody waits for a quarter of a second, however slow the baseline is`() {
        #expect(calls(260_000).flaw(comparedWithBaseline: calls(250_000)) != nil)
        #expect(calls(200_000).flaw(comparedWithBaseline: calls(190_000)) == nil)
        let (bus, before) = (calls(200_000), calls(100))
        #expect(calls(260_000).flaw(comparedWith: calls(200), bus: bus, before: before) != nil)
    }

    @Test func `what the bus itself takes longer is no fault of the service`() {
        #expect(calls(5000).flaw(comparedWith: calls(1000), bus: calls(2500), before: calls(500)) == nil)
        #expect(calls(7000).flaw(comparedWith: calls(1000), bus: calls(2500), before: calls(500)) != nil)
    }

    @Test func `no calls are a flaw`() {
        #expect(Latencies().flaw(comparedWithBaseline: calls(100)) != nil)
        #expect(Latencies().flaw(comparedWith: calls(100), bus: calls(100), before: calls(100)) != nil)
    }
}
