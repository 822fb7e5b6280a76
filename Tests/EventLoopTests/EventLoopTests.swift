// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import Testing

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct EventLoopTests {
    @Test func `code of the actor is on one thread, also after it waited for others`() async throws {
        let thread = pthread_self()
        let other = await Task.detached { UInt(pthread_self()) }.value
        #expect(other != UInt(thread))
        #expect(pthread_self() == thread)
        try await Task.sleep(for: .milliseconds(1))
        #expect(pthread_self() == thread)
        #expect(await Task { @BusActor in UInt(pthread_self()) }.value == UInt(thread))
        BusActor.assumeIsolated { #expect(pthread_self() == thread) }
    }

    @Test func `jobs from many threads all run`() async {
        var count = 0
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<1000 { group.addTask { @BusActor in count += 1 } }
        }
        #expect(count == 1000)
    }

    @Test func `a timer calls once, not early`() async throws {
        let start = EventLoop.now
        var calls: [UInt64] = []
        let source = EventLoop.shared.after(.milliseconds(30)) { calls.append(EventLoop.now) }
        // The delay counts from here: it isn't shorter if the loop was busy before.
        try await eventually { !calls.isEmpty }
        try await Task.sleep(for: .milliseconds(20))
        #expect(calls.count == 1 && calls[0] >= start + 30_000)
        withExtendedLifetime(source) {}
    }

    @Test func `a timer that has called lets go of what its action holds`() async throws {
        final class Holder { var source: EventSource? }
        var holder: Holder? = Holder()
        weak let watched = holder
        var calls = 0
        holder?.source = EventLoop.shared.after(.zero) { [holder] in calls += holder == nil ? 0 : 1 }
        holder = nil
        #expect(watched != nil)
        try await eventually { calls == 1 }
        #expect(watched == nil)
    }

    @Test func `a cancelled or released source doesn't call`() async throws {
        var calls = 0
        let cancelled = EventLoop.shared.after(.milliseconds(5)) { calls += 1 }
        cancelled.cancel()
        _ = EventLoop.shared.after(.milliseconds(5)) { calls += 1 }
        try await Task.sleep(for: .milliseconds(30))
        #expect(calls == 0)
    }

    @Test func `a source may be released by its own action`() async throws {
        var source: EventSource?
        var calls = 0
        source = EventLoop.shared.after(.zero) {
            source = nil
            calls += 1
        }
        #expect(source != nil)
        try await eventually { calls == 1 }
        let pipe = Pipe()
        try pipe.fileHandleForWriting.write(contentsOf: Data([1]))
        source = EventLoop.shared.onReadable(pipe.fileHandleForReading.fileDescriptor) {
            source = nil
            calls += 1
        }
        try await eventually { calls == 2 }
        try await Task.sleep(for: .milliseconds(10))
        #expect(calls == 2)
    }

    @Test func `thousands of jobs that wait don't keep the loop from events`() async throws {
        var (done, doneAtEvent) = (0, Int?.none)
        let source = EventLoop.shared.after(.milliseconds(1)) { doneAtEvent = done }
        let jobs = (0..<2000).map { _ in
            EventLoop.task {
                let end = EventLoop.now + 50
                while EventLoop.now < end {}
                done += 1
            }
        }
        for job in jobs { await job.value }
        #expect(try #require(doneAtEvent) < 2000 && done == 2000)
        withExtendedLifetime(source) {}
    }

    @Test func `a signal calls`() async throws {
        var calls = 0
        let source = EventLoop.shared.onSignal(SIGUSR1) { calls += 1 }
        // Sent to this thread, because the test process's other threads don't block the signal.
        pthread_kill(pthread_self(), SIGUSR1)
        try await eventually { calls == 1 }
        withExtendedLifetime(source) {}
    }

    @Test func `a directory's changes come with names`() async throws {
        let directory = FileManager.default.temporaryDirectory.appendingPathComponent(UUID().uuidString)
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        var names: [String?] = []
        let source = try EventLoop.shared.watch(directory: directory.path) { names.append($0) }
        try Data([1]).write(to: directory.appendingPathComponent("file"))
        try await eventually { names.contains("file") }
        try FileManager.default.removeItem(at: directory)
        try await eventually { names.contains(nil) }
        #expect(throws: EventLoopError.self) {
            _ = try EventLoop.shared.watch(directory: directory.path) { _ in }
        }
        withExtendedLifetime(source) {}
    }
}

/// Tests in their own processes, where nothing has used the loop yet.
@Suite(.timeLimit(.minutes(30)))
struct EventLoopProcessTests {
    @Test func `a signal ends a service with the code it chooses`() async {
        await #expect(processExitsWith: .exitCode(7)) {
            let code = EventLoop.runOnThisThread(handling: [SIGTERM]) {
                let source = EventLoop.shared.onSignal(SIGTERM) { EventLoop.shared.exit(7) }
                pthread_kill(pthread_self(), SIGTERM)
                try await Task.sleep(for: .seconds(30))
                withExtendedLifetime(source) {}
                return 1
            }
            exit(code)
        }
    }

    @Test func `a signal that a program doesn't handle ends it`() async {
        await #expect(processExitsWith: .signal(SIGTERM)) {
            exit(
                EventLoop.runOnThisThread(handling: [SIGHUP]) {
                    kill(getpid(), SIGTERM)
                    try await Task.sleep(for: .seconds(30))
                    return 1
                })
        }
    }

    @Test func `what main returns or throws ends the loop`() async {
        await #expect(processExitsWith: .exitCode(3)) {
            exit(EventLoop.runOnThisThread { 3 })
        }
        let result = await #expect(processExitsWith: .exitCode(1), observing: [\.standardErrorContent]) {
            exit(EventLoop.runOnThisThread { throw NoLuck() })
        }
        let text = String(decoding: result?.standardErrorContent ?? [], as: UTF8.self)
        #expect(text.contains("no luck"))
    }

    @Test func `the loop can't run on two threads`() async {
        await #expect(processExitsWith: .failure) {
            await Task { @BusActor in }.value
            _ = EventLoop.runOnThisThread { 0 }
            exit(0)
        }
    }

    @Test func `code that isn't on the loop's thread can't pretend to be`() async {
        await #expect(processExitsWith: .failure) {
            BusActor.assumeIsolated {}
            exit(0)
        }
    }
}

private struct NoLuck: Error, CustomStringConvertible {
    var description: String { "no luck" }
}

/// Waits until `condition` is true. Fails after a minute and ten checks, because machines that run tests may be busy.
@BusActor
private func eventually(_ condition: @BusActor () -> Bool) async throws {
    let end = ContinuousClock.now + .seconds(60)
    var looks = 0
    while !condition() {
        looks += 1
        if ContinuousClock.now >= end, looks >= 10 { throw NoLuck() }
        try await Task.sleep(for: .milliseconds(5))
    }
}
