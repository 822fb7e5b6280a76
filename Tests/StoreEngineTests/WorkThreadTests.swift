// SPDX-License-Identifier: Apache-2.0

import Dispatch
import Glibc
import Synchronization
import Testing

@testable import Replication

struct WorkThreadTests {
    @Test func `work that follows soon is done in order, and by the same thread`() async throws {
        let thread = WorkThread(WorkPool(threads: 1, patience: 3600))
        var key = pthread_key_t()
        try #require(pthread_key_create(&key, nil) == 0)
        defer { pthread_key_delete(key) }
        let mark = key
        var threads = 0
        for _ in 0..<40 {
            let isNew = await withCheckedContinuation { continuation in
                thread.run {
                    let isNew = pthread_getspecific(mark) == nil
                    pthread_setspecific(mark, UnsafeRawPointer(bitPattern: 1))
                    continuation.resume(returning: isNew)
                }
            }
            if isNew { threads += 1 }
        }
        #expect(threads == 1)
        let order = await withCheckedContinuation { continuation in
            let done = Done()
            for number in 0..<100 { thread.run { done.numbers.append(number) } }
            thread.run { continuation.resume(returning: done.numbers) }
        }
        #expect(order == Array(0..<100))
    }

    @Test func `many that have work share few threads, which end when all is done`() async throws {
        let pool = WorkPool(threads: 3)
        let present = Mutex((now: 0, most: 0, done: 0))
        let queues = (0..<200).map { _ in WorkThread(pool) }
        await withCheckedContinuation { continuation in
            for queue in queues {
                for _ in 0..<5 {
                    queue.run {
                        present.withLock { ($0.now, $0.most) = ($0.now + 1, max($0.most, $0.now + 1)) }
                        usleep(100)
                        let isLast = present.withLock { present in
                            (present.now, present.done) = (present.now - 1, present.done + 1)
                            return present.done == 1000
                        }
                        if isLast { continuation.resume() }
                    }
                }
            }
        }
        #expect(present.withLock { (1...3).contains($0.most) && $0.now == 0 })
    }

    @Test func `what blocks in one pool holds up nothing in another, and nothing beside it where there is a thread`()
        async throws
    {
        let (blocking, other) = (WorkPool(threads: 2), WorkPool(threads: 1))
        let gate = DispatchSemaphore(value: 0)
        WorkThread(blocking).run { gate.wait() }
        for pool in [blocking, other] {
            await WorkThread(pool).finish()
        }
        gate.signal()
    }

    @Test func `one owner's work that blocks leaves the other threads to others`() async {
        let pool = WorkPool(threads: 4, perOwner: 2)
        let gate = DispatchSemaphore(value: 0)
        let done = Mutex(0)
        let mine = (0..<10).map { _ in WorkThread(pool, owner: 1) }
        for queue in mine {
            queue.run {
                gate.wait()
                done.withLock { $0 += 1 }
            }
        }
        // One after the other, so that threads become idle and are woken while work is queued that may not begin.
        for owner in 2..<40 as Range<UInt32> {
            await withCheckedContinuation { continuation in
                WorkThread(pool, owner: owner).run { continuation.resume() }
            }
        }
        #expect(done.withLock(\.self) == 0)
        for _ in mine { gate.signal() }
        for queue in mine { await queue.finish() }
        #expect(done.withLock(\.self) == mine.count)
    }

    @Test func `work that never ends leaves its owner a thread, but not at the same place`() async throws {
        let pool = WorkPool(threads: 8, perOwner: 2, perPlace: 4, longestTurn: 1)
        let gate = DispatchSemaphore(value: 0)
        let begun = Mutex(0)
        func queue(of owner: UInt32, at place: String) -> WorkThread {
            let queue = WorkThread(pool, owner: owner)
            queue.place = place
            return queue
        }
        let stuck = (0..<12).map { queue(of: UInt32($0 / 3), at: "dead") }
        for queue in stuck {
            queue.run {
                begun.withLock { $0 += 1 }
                gate.wait()
            }
        }
        // Another owner's work, also there: the place has no more threads.
        while begun.withLock(\.self) < 4 { await Task.yield() }
        await queue(of: 9, at: "alive").finish()
        try await Task.sleep(for: .seconds(2))
        for owner in [0, 1] as [UInt32] { await queue(of: owner, at: "alive").finish() }
        #expect(begun.withLock(\.self) == 4)
        for _ in stuck { gate.signal() }
        for queue in stuck { await queue.finish() }
        #expect(begun.withLock(\.self) == 12)
    }

    @Test func `where no thread is to be had the work waits for one, and the caller does none of it`() async {
        let attempts = Mutex(0)
        let pool = WorkPool(threads: 8) { pool in
            let isOver = attempts.withLock { attempts in
                attempts += 1
                return attempts > 3
            }
            return isOver && pool.start()
        }
        WorkPool.retry { again in DispatchQueue.global().async(execute: again) }
        let isCaller = await withCheckedContinuation { continuation in
            let caller = pthread_self()
            WorkThread(pool).run { continuation.resume(returning: pthread_equal(pthread_self(), caller) != 0) }
        }
        #expect(!isCaller && attempts.withLock(\.self) == 4)
    }

    /// Only one thread writes at a time, which is what the test checks.
    private final class Done: @unchecked Sendable {
        var numbers: [Int] = []
    }
}
