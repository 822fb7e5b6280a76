// SPDX-License-Identifier: Apache-2.0

internal import PressureTesting
internal import UbiquitousStoreTesting

/// The latencies that a user sees while others use the service.
struct Measurement {
    private let service: Latencies
    private let bus: Latencies
    /// The most private memory of the service, in KiB.
    private let memory: Int

    /// Lets a user call for a while.
    init(of site: Site, seconds: Int) async throws {
        let client = try ClientProcess(site, 0, user: Site.users[0], seconds: seconds)
        var most = 0
        for _ in 0..<seconds * 10 {
            try await Task.sleep(for: .milliseconds(100))
            most = max(most, site.memory)
        }
        let result = try await client.result()
        var all = result.reads
        all.add(result.writes)
        (service, bus, memory) = (all, result.busCalls, most)
    }

    static let heading = """
        | what | service before; then, p50 and p99 in µs | the bus itself before; then | most |
        | --- | --- | --- | --- |
        """

    /// A row of the table.
    func row(_ words: String, _ during: Measurement) -> String {
        """
        | \(words) | \(Self.text(service)); then \(Self.text(during.service)) | \(Self.text(bus)); then \
        \(Self.text(during.bus)) | \(during.memory / 1024) MiB |
        """
    }

    /// The rule that does not hold; `nil` if all do. What the bus itself takes longer does not count.
    func flaw(comparedWith before: Measurement) -> String? {
        let (p99, former) = (service.permille(990), before.service.permille(990))
        if service.count == 0 { return "others are not served" }
        let ofBus = 2 * max(0, bus.permille(990) - before.bus.permille(990))
        if p99 - ofBus > 250_000 { return "others' p99 is \(Int(p99 / 1000)) ms" }
        if p99 - ofBus > 1.5 * former { return "others' p99 is \(Int(p99)) µs, and was \(Int(former)) µs" }
        return nil
    }

    private static func text(_ latencies: Latencies) -> String {
        "\(Int(latencies.permille(500))), \(Int(latencies.permille(990)))"
    }
}
