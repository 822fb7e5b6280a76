// SPDX-License-Identifier: Apache-2.0

import Foundation
import SDBus
import Testing

@testable import StoreDaemon

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct CycleTimerTests {
    private let directory = FileManager.default.temporaryDirectory.appending(path: "cycles-\(UUID())").path

    init() throws { try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true) }

    private var isRecorded: Bool { FileManager.default.fileExists(atPath: directory + "/sync-cycle") }

    @Test func `a cycle is recorded while it runs, and begins again only when it is due again`() async throws {
        var recorded: [Bool] = []
        let timer = CycleTimer(in: directory) { recorded.append(isRecorded) }
        timer.set(EventLoop.now)
        try await eventually { recorded == [true] && !isRecorded }
        timer.set(0)
        try await eventually { recorded == [true, true] && !isRecorded }
        timer.set(EventLoop.now)
        timer.set(nil)
        // The loop runs timers in the order in which they are due, so the first timer's cycle would come before this.
        let other = CycleTimer(in: directory) { recorded.append(false) }
        other.set(EventLoop.now)
        try await eventually { recorded == [true, true, false] }
        try FileManager.default.removeItem(atPath: directory)
    }

    @Test func `a process that ends as it should leaves no record of the cycle that it cut`() async throws {
        var continuation: CheckedContinuation<Void, Never>?
        let timer = CycleTimer(in: directory) { await withCheckedContinuation { continuation = $0 } }
        timer.set(EventLoop.now)
        try await eventually { continuation != nil }
        #expect(isRecorded)
        timer.stop()
        #expect(!isRecorded)
        continuation?.resume()
        try FileManager.default.removeItem(atPath: directory)
    }
}
