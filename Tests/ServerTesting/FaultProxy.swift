// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// Stands before a server, and does to requests what networks and servers do.
public final class FaultProxy: Sendable {
    /// A fault that a request meets.
    public enum Fault: Sendable {
        /// The request never arrives.
        case cut
        /// The request takes effect, and the answer never arrives.
        case answerLost
        /// Only so many bytes of the answer arrive.
        case answerCut(Int)
        /// The request takes effect twice.
        case twice
        /// The request arrives so many milliseconds late.
        case late(Int)
        /// The request waits until another one was answered, on another connection, for at most so many milliseconds.
        case overtaken(Int)
        /// The request's last bytes, so many, never arrive, and the connection ends.
        case requestCut(Int)
        /// The request is not passed on. The proxy gives this answer.
        case answer(ServerAnswer)
    }

    private final class Shared: Sendable {
        let upstream: UInt16
        let fault = Mutex<(@Sendable (ServerRequest) -> Fault?)?>(nil)
        let passed = Mutex<[Exchange]>([])
        let answered = Atomic(0)
        init(_ upstream: UInt16) { self.upstream = upstream }
    }

    /// A request that the server has answered.
    public struct Exchange: Sendable {
        /// The request.
        public let request: ServerRequest
        /// The answer's bytes, headers included.
        public let answerBytes: Int
        /// The answer's status.
        public let status: Int
    }

    private let shared: Shared
    private let server: ScriptedServer

    /// Starts a proxy that passes everything on to a port of this machine.
    public init(before upstream: UInt16) throws {
        let shared = Shared(upstream)
        self.shared = shared
        server = try ScriptedServer { request in FaultProxy.pass(request, shared) }
    }

    /// The proxy's port.
    public var port: UInt16 { server.port }

    /// Sets the function that decides on faults; `nil` ends them.
    public func onRequest(_ fault: (@Sendable (ServerRequest) -> Fault?)?) {
        shared.fault.withLock { $0 = fault }
    }

    /// The requests that the server has answered since this was last set.
    public var exchanges: [Exchange] {
        get { shared.passed.withLock(\.self) }
        set { shared.passed.withLock { $0 = newValue } }
    }

    /// All requests that came to the proxy, whatever happened to them.
    public var requests: [ServerRequest] { server.requests }

    /// Whether the proxy has received more requests than the server has answered.
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

    /// Sends a request to the server on a connection of its own.
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
