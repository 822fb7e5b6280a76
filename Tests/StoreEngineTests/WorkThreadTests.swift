// SPDX-License-Identifier: Apache-2.0

import Glibc
import Replication
import Testing

@testable import StoreEngine

struct WorkThreadTests {
    @Test func `work that follows soon is done in order, and seldom by another thread`() async throws {
        let thread = WorkThread()
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
        // A machine that is busy may let a quarter of a second pass between two of them.
        #expect((1..<20).contains(threads))
        let order = await withCheckedContinuation { continuation in
            let done = Done()
            for number in 0..<100 { thread.run { done.numbers.append(number) } }
            thread.run { continuation.resume(returning: done.numbers) }
        }
        #expect(order == Array(0..<100))
    }

    /// Written by one thread at a time, which is what is tested.
    private final class Done: @unchecked Sendable {
        var numbers: [Int] = []
    }
}
