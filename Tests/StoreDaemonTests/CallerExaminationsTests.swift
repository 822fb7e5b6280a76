// SPDX-License-Identifier: Apache-2.0

import Glibc
import SDBus
import Synchronization
import Testing

@testable import StoreDaemon

@BusActor
@Suite(.timeLimit(.minutes(5)))
struct CallerExaminationsTests {
    /// Processes that can't be examined before a gate is opened.
    private final class Gate: Sendable {
        private let isOpen = Mutex(false)

        func open() { isOpen.withLock { $0 = true } }

        func pass() { while !isOpen.withLock(\.self) { usleep(1000) } }
    }

    @Test func `users whose processes take long to examine have nobody else wait`() async throws {
        let gate = Gate()
        defer { gate.open() }
        let examinations = CallerExaminations { pid in
            if pid == 1 { gate.pass() }
            return CallerIdentity(engine: .host, applicationIdentifier: "\(pid ?? 0)")
        }
        var found: [String] = []
        func examine(_ pid: Int32, of uid: UInt32) {
            examinations.examine(Credentials(uid: uid, pid: pid)) { result in
                guard case .success(let context as ExaminedCaller) = result else { return found.append("refused") }
                found.append(context.identity.applicationIdentifier)
            }
        }
        for _ in 0..<CallerExaminations.most { examine(1, of: 1000) }
        for _ in 0..<10 { examine(1, of: 1000) }
        #expect(found == Array(repeating: "refused", count: 10))
        examine(0, of: 0)
        #expect(found.last == "")
        examine(2, of: 1001)
        try await eventually { found.last == "2" }
        gate.open()
        try await eventually { found.count == CallerExaminations.most + 12 }
        examine(3, of: 1000)
        try await eventually { found.last == "3" }
    }
}
