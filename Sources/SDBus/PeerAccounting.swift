// SPDX-License-Identifier: Apache-2.0

/// The questions to dbus-broker how many bytes it holds for connections.
///
/// Its answer is about every connection of the bus, and others can open thousands. So one question is under way at a
/// time, everybody who waits gets its answer, and the loop serves others for a while before the next one.
@BusActor
final class PeerAccounting {
    /// Asks the bus for the bytes of connections, and returns what it took to read the answer, in microseconds.
    typealias Question = @BusActor (Set<String>) async throws -> (bytes: [String: Int], time: UInt64)

    private let question: Question
    private var waiting: [(name: String, continuation: CheckedContinuation<Int?, any Error>)] = []
    private var isUnderWay = false

    /// How much longer the loop serves others than it reads an answer.
    private static let rest: UInt64 = 20

    init(_ question: @escaping Question) { self.question = question }

    /// Returns how many bytes the bus holds for a connection; `nil` if it doesn't know the connection.
    func bytes(of name: String) async throws -> Int? {
        try await withCheckedThrowingContinuation {
            waiting.append((name, $0))
            askNext()
        }
    }

    private func askNext() {
        if isUnderWay || waiting.isEmpty { return }
        isUnderWay = true
        EventLoop.task { [self] in
            let asking = waiting
            waiting = []
            do {
                let answer = try await question(Set(asking.map(\.name)))
                for (name, continuation) in asking { continuation.resume(returning: answer.bytes[name]) }
                await EventLoop.pause(.microseconds(Int64(answer.time * Self.rest)))
            } catch {
                for (_, continuation) in asking { continuation.resume(throwing: error) }
            }
            isUnderWay = false
            askNext()
        }
    }
}
