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
    init(of site: Site, seconds: Int, patience: Duration = .seconds(60)) async throws {
        let client = try ClientProcess(
            site, 0, user: Site.users[0], seconds: seconds, prepares: !site.storesNothing)
        var most = 0
        for _ in 0..<seconds * 10 {
            try await Task.sleep(for: .milliseconds(100))
            most = max(most, site.memory)
        }
        let result = try await client.result(patience: patience)
        var all = result.reads
        all.add(result.writes)
        (service, bus, memory) = (all, result.busCalls, most)
    }

    static let heading = """
        | what | service before; then, p50 and p99 in µs | the bus itself before; then | most |
        | --- | --- | --- | --- |
        """

    static let wallsHeading = """
        | what | service before; then, p50 and p99 in µs | baseline then | the bus itself before; then | most |
        | --- | --- | --- | --- | --- |
        """

    /// A row of the table.
    func row(_ words: String, _ during: Measurement) -> String {
        row([words, "\(Self.text(service)); then \(Self.text(during.service))"], during)
    }

    /// A row of the table that has the baseline, too.
    func row(_ words: String, _ during: Measurement, _ baseline: BaselineResult) -> String {
        let text =
            switch baseline {
            case .measured(let baseline): Self.text(baseline.service)
            case .fallen: "serves nobody"
            case .pointless: "has no such thing"
            }
        return row([words, "\(Self.text(service)); then \(Self.text(during.service))", text], during)
    }

    private func row(_ cells: [String], _ during: Measurement) -> String {
        let others = ["\(Self.text(bus)); then \(Self.text(during.bus))", "\(during.memory / 1024) MiB"]
        return "| \((cells + others).joined(separator: " | ")) |"
    }

    /// The goal that is missed; `nil` if none is.
    /// - Parameter baseline: the same attack on a program that stores nothing; `nil` compares with the time before.
    func flaw(before: Measurement, baseline: Measurement? = nil) -> String? {
        if let baseline { return service.flaw(comparedWithBaseline: baseline.service) }
        return service.flaw(comparedWith: before.service, bus: bus, before: before.bus)
    }

    private static func text(_ latencies: Latencies) -> String {
        if latencies.count == 0 { return "no calls" }
        return "\(Int(latencies.permille(500))), \(Int(latencies.permille(990)))"
    }
}
