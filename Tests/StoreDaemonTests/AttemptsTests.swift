// SPDX-License-Identifier: Apache-2.0

import Replication
import SDBus
import Testing

@testable import StoreDaemon

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct AttemptsTests {
    private let attempts = Attempts()

    /// Records what attempts do.
    private actor Diary {
        private(set) var lines: [String] = []
        func note(_ line: String) { lines.append(line) }
    }

    private func message(of error: any Error) -> String { (error as? BusError)?.message ?? "\(error)" }

    @Test func `one thing is done at a time, and the next one after it has failed`() async throws {
        struct Failure: Error {}
        let body: @BusActor () async throws -> Void = { [attempts] in
            #expect(attempts.isBusy)
            await #expect(throws: BusError.self) { try await attempts.alone {} }
            await #expect(throws: BusError.self) { try await attempts.make {} }
            throw Failure()
        }
        await #expect(throws: Failure.self) { try await attempts.alone(body) }
        #expect(!attempts.isBusy)
        #expect(try await attempts.make { 7 } == 7)
        #expect(!attempts.isBusy)
    }

    @Test func `a call waits for a step that nobody asked for`() async throws {
        let (hand, diary) = (AsyncStream<Void>.makeStream(), Diary())
        await attempts.stepEnd()
        let step = Task { @BusActor in
            try await attempts.alone(asStep: true) {
                await diary.note("step begins")
                for await _ in hand.stream {}
                await diary.note("step ends")
            }
        }
        while await diary.lines.isEmpty { await Task.yield() }
        let calls = (0..<2).map { _ in
            Task { @BusActor in
                await attempts.stepEnd()
                await diary.note("call")
            }
        }
        for _ in 0..<100 { await Task.yield() }
        hand.continuation.finish()
        try await step.value
        for call in calls { await call.value }
        #expect(await diary.lines == ["step begins", "step ends", "call", "call"])
        #expect(try await attempts.make { 7 } == 7)
    }

    @Test func `what takes too long fails, is cancelled, and keeps nothing else waiting`() async throws {
        let (attempts, diary) = (Attempts(limit: .milliseconds(10)), Diary())
        let error = await #expect(throws: RemoteError.self) {
            try await attempts.make {
                try? await Task.sleep(for: .seconds(3600))
                await diary.note("cancelled")
            }
        }
        #expect(error?.message == "The remote did not answer within a minute.")
        while await diary.lines.isEmpty { await Task.yield() }
        #expect(!attempts.isBusy)
    }

    @Test(arguments: 0..<8) func `a time limit ends an attempt also where it is over at once`(_: Int) async {
        for _ in 0..<1000 {
            let attempts = Attempts(limit: .microseconds(Int64.random(in: 0..<1000)))
            await #expect(throws: RemoteError.self) {
                try await attempts.make { try? await Task.sleep(for: .seconds(3600)) }
            }
        }
    }

    @Test func `a newer attempt ends the former one, and begins once that has ended`() async throws {
        let diary = Diary()
        let former = Task { @BusActor in
            try await attempts.make {
                await diary.note("former begins")
                try? await Task.sleep(for: .seconds(3600))
                await diary.note("former ends")
            }
        }
        while !(await diary.lines.contains("former begins")) { await Task.yield() }
        try await attempts.make { await diary.note("newer") }
        #expect(await diary.lines == ["former begins", "former ends", "newer"])
        guard case .failure(let error) = await former.result else { return #expect(Bool(false)) }
        #expect(message(of: error) == "A newer call has ended this one.")
    }

    @Test func `an attempt whose caller has given up comes to nothing, also where its answer is there`() async throws {
        let diary = Diary()
        let given = Task { @BusActor in
            try await attempts.make {
                await diary.note("begins")
                try? await Task.sleep(for: .seconds(3600))
                return 7
            }
        }
        while await diary.lines.isEmpty { await Task.yield() }
        attempts.endLatest()
        await #expect(throws: BusError.self) { try await given.value }
        #expect(!attempts.isBusy)
        attempts.endLatest()
        #expect(try await attempts.make { 8 } == 8)
    }

    @Test func `of several newer attempts the last one is made, after those before it have ended`() async throws {
        let diary = Diary()
        let tasks = (0..<3).map { number in
            Task { @BusActor in
                try await attempts.make {
                    await diary.note("\(number) begins")
                    if number < 2 { try? await Task.sleep(for: .seconds(3600)) }
                    await diary.note("\(number) ends")
                }
            }
        }
        try await tasks[2].value
        for task in tasks.dropLast() { await #expect(throws: BusError.self) { try await task.value } }
        let lines = await diary.lines
        #expect(lines.suffix(2) == ["2 begins", "2 ends"])
        #expect(lines.count { $0.hasSuffix("begins") } == lines.count { $0.hasSuffix("ends") })
    }

    @Test func `an attempt that waits for one that hangs fails as soon as there is a newer one`() async throws {
        let (attempts, hand, diary) = (
            Attempts(limit: .seconds(3600)), AsyncStream<Void>.makeStream(), Diary()
        )
        let hanging = Task { @BusActor in
            try await attempts.make {
                await diary.note("hangs")
                // The end of a stream, unlike a pause, would come with the cancellation of its reader.
                await Task.detached { for await _ in hand.stream {} }.value
            }
        }
        while await diary.lines.isEmpty { await Task.yield() }
        let waiting = (0..<100).map { _ in Task { @BusActor in try await attempts.make { await diary.note("made") } } }
        for task in waiting.dropLast() { await #expect(throws: BusError.self) { try await task.value } }
        #expect(attempts.isBusy)
        hand.continuation.finish()
        try await waiting[99].value
        await #expect(throws: BusError.self) { try await hanging.value }
        #expect(await diary.lines == ["hangs", "made"])
    }
}
