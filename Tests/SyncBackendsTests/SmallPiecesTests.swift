// SPDX-License-Identifier: Apache-2.0

import BackendSupport
import Dispatch
import PropertyList
import Replication
import Synchronization
import Testing

@testable import Etcd
@testable import HTTPClient
@testable import WebDAV

/// Answers of servers that send byte by byte.
@Suite(.timeLimit(.minutes(30)))
struct SmallPiecesTests {
    private func feed(_ sink: HTTPRequest.Sink, _ text: String, piece: Int = .max) {
        var rest = Array(text.utf8)[...]
        while !rest.isEmpty {
            _ = Array(rest.prefix(piece)).withUnsafeBytes { sink.take($0) }
            rest = rest.dropFirst(piece)
        }
    }

    /// How many pieces of one byte a sink takes before the server has to wait.
    private func piecesTaken(by sink: HTTPRequest.Sink) -> Int {
        var count = 0
        while !sink.isBusy(), count < 1 << 18 {
            feed(sink, " ")
            count += 1
        }
        return count
    }

    @Test func `bytes of a watch that nobody has read yet wait in bounded memory`() async {
        let gate = DispatchSemaphore(value: 0)
        let lines = EtcdLines(
            { _ in
                gate.wait()
                return true
            }, whenOver: {})
        feed(lines.sink, "{\"result\":{}}\n")
        #expect(piecesTaken(by: lines.sink) <= 1024)
        gate.signal()
        await lines.finish()
        #expect(!lines.sink.isBusy())
    }

    @Test func `bytes of a listing that nobody has read yet wait in bounded memory`() async {
        let gate = DispatchSemaphore(value: 0)
        let reader = Multistatus.Reader(within: RemoteBudget()) { _ in
            gate.wait()
            return true
        }
        feed(reader.sink, "<multistatus xmlns='DAV:'><response><href>/a</href></response>")
        #expect(piecesTaken(by: reader.sink) <= 1024)
        gate.signal()
        _ = await reader.flaw
        #expect(!reader.sink.isBusy())
    }

    @Test(arguments: [1, 2, 3, 7, .max]) func `lines are read however they are cut into pieces`(_ piece: Int) async {
        let taken = Mutex<[Value?]>([])
        let lines = EtcdLines(
            { value in
                taken.withLock { $0.append(value) }
                return value != nil
            }, whenOver: {})
        feed(lines.sink, "{\"result\":1}\n{\"result\":2}\n{\"result\":3}", piece: piece)
        await lines.finish()
        #expect(taken.withLock(\.self) == [.integer(1), .integer(2)])
        feed(lines.sink, "\n", piece: piece)
        feed(lines.sink, String(repeating: "x", count: 300_000), piece: max(piece, 1000))
        await lines.finish()
        #expect(taken.withLock(\.self) == [.integer(1), .integer(2), .integer(3), nil])
    }
}
