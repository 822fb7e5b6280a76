// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@testable import StoreDaemon

@Suite struct WaitingLineTests {
    private final class Subscription {}

    private func work(_ bytes: Int, _ subscription: Subscription? = nil) -> WaitingWork {
        let kind = subscription.map { WaitingWork.Kind.signal(of: $0) } ?? .call
        return WaitingWork(bytes: bytes, takesLong: false, held: nil, kind: kind) {}
    }

    @Test func `what waits goes in its order, and what had its turn goes before it`() {
        var line = WaitingLine()
        for number in 0..<100 { line.add(work(number), isNext: false) }
        for number in 0..<70 { #expect(line.removeFirst()?.bytes == number) }
        for number in 0..<40 { line.add(work(-number), isNext: true) }
        for number in (0..<40).reversed() { #expect(line.removeFirst()?.bytes == -number) }
        for number in 70..<100 { #expect(line.removeFirst()?.bytes == number) }
        #expect(line.isEmpty && line.removeFirst() == nil)
    }

    @Test func `the signal of a subscription that has ended no longer waits`() {
        var line = WaitingLine()
        let (ended, other) = (Subscription(), Subscription())
        for (bytes, subscription) in [(1, nil), (2, ended), (3, other)] {
            line.add(work(bytes, subscription), isNext: false)
        }
        line.removeSignal(of: ended)
        line.removeSignal(of: ended)
        #expect(line.removeFirst()?.bytes == 1 && line.first?.bytes == 3)
        line.removeSignal(of: other)
        #expect(line.isEmpty)
    }
}
