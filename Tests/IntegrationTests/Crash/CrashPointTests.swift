// SPDX-License-Identifier: Apache-2.0

import Foundation
import PropertyList
import SDBus
import Testing
import UbiquitousStoreTesting

/// Kills the service before, and in the middle of, each of its operations on files, and cuts the power after each.
///
/// All of them take a quarter of an hour: `CRASH_POINTS=all script/test --filter CrashPointTests`. Otherwise each run
/// takes another sample.
@BusActor
@Suite(.timeLimit(.minutes(60)), .serialized)
struct CrashPointTests {
    private static let isComplete = ProcessInfo.processInfo.environment["CRASH_POINTS"] == "all"

    /// Returns a sample of the numbers from 1 to `count`, or all of them.
    private func sample(of count: Int, _ size: Int) -> [Int] {
        let all = Array(1...max(1, count))
        return Self.isComplete ? all : all.shuffled().prefix(size).sorted()
    }

    @Test(arguments: [false, true])
    func `killed at any operation on a file, the service loses nothing and uses no dot twice`(
        isEncrypted: Bool
    ) async throws {
        for (run, count) in try await operationsOfLaptop(isEncrypted).enumerated() {
            for operation in sample(of: count, isEncrypted ? 3 : 6) {
                for half in [false, true] {
                    await reporting("killed at operation \(operation) of run \(run)\(half ? ", half done" : "")") {
                        try await kill(.init(run: run, operation: operation, half: half), isEncrypted, $0)
                    }
                }
            }
        }
    }

    @Test(arguments: [false, true])
    func `after a power cut at any moment, what was synchronised is there and no dot is used twice`(
        isEncrypted: Bool
    ) async throws {
        let workload = try await CrashWorkload(isEncrypted: isEncrypted)
        defer { workload.end() }
        let isDone = try await workload.run()
        try #require(isDone)
        workload.end()
        let journal = try workload.journal()
        for count in sample(of: journal.records.count, isEncrypted ? 8 : 15) {
            for loss in [DiskImage.Loss.everything, .some(seed: UInt64(count))] {
                await reporting("the power was cut after operation \(count), lost: \(loss)") {
                    try await cutPower(workload, journal, count, loss, $0)
                }
            }
        }
    }

    /// Returns roughly how many operations the laptop's service does in each run; timers cause some of them.
    private func operationsOfLaptop(_ isEncrypted: Bool) async throws -> [Int] {
        let workload = try await CrashWorkload(isEncrypted: isEncrypted)
        defer { workload.end() }
        let isDone = try await workload.run()
        try #require(isDone)
        return workload.operations(in: try workload.journal())
    }

    /// Records an error together with the moment of the crash, and continues.
    private func reporting(_ moment: Comment, _ body: @BusActor (Comment) async throws -> Void) async {
        do { try await body(moment) } catch { Issue.record("\(moment): \(error)") }
    }

    private func kill(_ kill: CrashWorkload.Kill, _ isEncrypted: Bool, _ moment: Comment) async throws {
        let workload = try await CrashWorkload(isEncrypted: isEncrypted)
        defer { workload.end() }
        let isDone = try await workload.run(kill)
        if isDone { return }
        try #require(workload.laptop.exit == .signal(SIGKILL), moment)
        var ledger = try DotLedger(phrase: workload.phrase)
        let journal = try workload.journal()
        try await ledger.note(workload.folder, in: journal, count: journal.records.count)
        try await workload.laptop.start()
        let values = try await workload.store(workload.laptop).everything()
        let lost = workload.keys.filter { !$1.allows(values[Text($0)]) }.keys.sorted()
        #expect(lost.isEmpty, moment)
        try await continueWork(workload, workload.laptop, &ledger, moment)
    }

    private func cutPower(
        _ workload: CrashWorkload, _ journal: DiskJournal, _ count: Int, _ loss: DiskImage.Loss, _ moment: Comment
    ) async throws {
        let directory = try TemporaryDirectory()
        let state = try directory.makeDirectory("state", mode: 0o700)
        let image = DiskImage(journal, count: count)
        try image.write(workload.laptop.stateDirectory, to: state, loss: loss)
        try FileManager.default.removeItem(atPath: workload.folder)
        try FileManager.default.createDirectory(atPath: workload.folder, withIntermediateDirectories: true)
        // The folder is on another machine's disk, so others see every write at once.
        try image.write(workload.folder, to: workload.folder, loss: .none)
        var ledger = try DotLedger(phrase: workload.phrase)
        try await ledger.note(workload.folder, in: journal, count: count)

        let laptop = try await CrashWorkload.device("laptop", state: state, journal: nil)
        defer {
            laptop.kill()
            laptop.bus.end()
            withExtendedLifetime(directory) {}
        }
        try await laptop.start()
        let values = try await workload.store(laptop).everything()
        let lost = workload.keys.filter { !$1.allows(values[Text($0)], afterPowerCutAt: count) }.keys.sorted()
        #expect(lost.isEmpty, moment)
        try await continueWork(workload, laptop, &ledger, moment)
    }

    /// Writes and syncs, and compares what the folder holds with what the device shows.
    private func continueWork(
        _ workload: CrashWorkload, _ laptop: Device, _ ledger: inout DotLedger, _ moment: Comment
    ) async throws {
        let (store, account) = (try workload.store(laptop), try workload.account(laptop))
        try await store.set("afterwards", .integer(1))
        if try await account.state() == "signed-out" {
            // A phrase can't open an account that doesn't exist yet.
            if workload.phrase != nil, workload.markers.isEmpty { return }
            try await workload.join(laptop)
        }
        try await eventually("the account works, \(moment)") {
            (try? await account.syncNow()) != nil
        }
        let values = try await store.everything()
        let shared = try await ledger.note(workload.folder)
        #expect(Dictionary(uniqueKeysWithValues: shared.map { (Text($0.key.string), $0.value) }) == values, moment)
        #expect(values[Text("afterwards")] == .integer(1), moment)
        #expect(ledger.doubles.isEmpty, moment)
        #expect(!laptop.log.contains("damaged") && !laptop.log.contains("set aside"), "\(moment): \(laptop.log)")
        check(laptop)
    }
}
