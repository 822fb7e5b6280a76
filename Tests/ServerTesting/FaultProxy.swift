// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// Stands before a server and does to requests what networks and servers do.
public final class FaultProxy: Sendable {
    /// What goes wrong with a request.
    public enum Fault: Sendable {
        /// It never arrives.
        case cut
        /// It is done, and the answer never arrives.
        case answerLost
        /// Of the answer only so many bytes arrive.
        case answerCut(Int)
        /// It is done twice.
        case twice
        /// It arrives late, in milliseconds.
        case late(Int)
        /// It waits until another one was answered, on another connection; so many milliseconds at most.
        case overtaken(Int)
        /// Of what is sent only so many bytes arrive, and the connection ends.
        case requestCut(Int)
        /// It is not passed on, and answered so.
        case answer(ServerAnswer)
    }

    private final class Shared: Sendable {
        let upstream: UInt16
        let fault = Mutex<(@Sendable (ServerRequest) -> Fault?)?>(nil)
        let passed = Mutex<[Exchange]>([])
        let answered = Atomic(0)
        init(_ upstream: UInt16) { self.upstream = upstream }
    }

    /// A request that was answered by the server.
    public struct Exchange: Sendable {
        /// What was asked.
        public let request: ServerRequest
        /// The answer's bytes, headers included.
        public let answerBytes: Int
        /// The answer's status.
        public let status: Int
    }

    private let shared: Shared
    private let server: ScriptedServer

    /// Passes everything on to a port of this machine.
    public init(before upstream: UInt16) throws {
        let shared = Shared(upstream)
        self.shared = shared
        server = try ScriptedServer { request in FaultProxy.pass(request, shared) }
    }

    /// Where it is.
    public var port: UInt16 { server.port }

    /// Decides what goes wrong; `nil` for nothing any more.
    public func onRequest(_ fault: (@Sendable (ServerRequest) -> Fault?)?) {
        shared.fault.withLock { $0 = fault }
    }

    /// What the server was asked, and how much it answered, since this was set last.
    public var exchanges: [Exchange] {
        get { shared.passed.withLock(\.self) }
        set { shared.passed.withLock { $0 = newValue } }
    }

    /// What it was asked, whatever became of that.
    public var requests: [ServerRequest] { server.requests }

    /// Whether it was asked something that it has not passed on.
    public var isWaiting: Bool { server.requests.count > exchanges.count }

    /// Closes everything.
    public func end() { server.end() }

    private static func pass(_ request: ServerRequest, _ shared: Shared) -> ServerAnswer {
        let fault = shared.fault.withLock(\.self)
        switch fault?(request) {
        case .cut: return .cut
        case .answer(let answer): return answer
        case .answerLost:
            _ = ask(request, shared)
            return .cut
        case .answerCut(let count):
            return ServerAnswer(bytes: Array(ask(request, shared).prefix(count)), closes: true)
        case .twice:
            _ = ask(request, shared)
            return ServerAnswer(bytes: ask(request, shared))
        case .late(let milliseconds):
            usleep(UInt32(milliseconds) * 1000)
            return ServerAnswer(bytes: ask(request, shared))
        case .overtaken(let milliseconds):
            let before = shared.answered.load(ordering: .relaxed)
            for _ in 0..<milliseconds where shared.answered.load(ordering: .relaxed) == before { usleep(1000) }
            return ServerAnswer(bytes: ask(request, shared))
        case .requestCut(let count):
            if let connection = try? Socket.connected(to: shared.upstream) {
                connection.write(Array(request.bytes.prefix(max(0, request.bytes.count - count))))
                usleep(20_000)
                connection.end()
            }
            return .cut
        case nil: return ServerAnswer(bytes: ask(request, shared))
        }
    }

    /// Asks the server on a connection of its own.
    private static func ask(_ request: ServerRequest, _ shared: Shared) -> [UInt8] {
        guard let connection = try? Socket.connected(to: shared.upstream) else { return [] }
        connection.write(request.bytes)
        var reader = MessageReader(connection)
        guard let answer = reader.readAnswer(to: request.method) else { return [] }
        let exchange = Exchange(request: request, answerBytes: answer.bytes.count, status: answer.status)
        shared.passed.withLock { $0.append(exchange) }
        shared.answered.add(1, ordering: .relaxed)
        return answer.bytes
    }
}
