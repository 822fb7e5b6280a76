// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A server whose answers come from a test.
public final class ScriptedServer: Sendable {
    /// The port on which it listens.
    public let port: UInt16
    private let socket: Socket
    private let readingPause: UInt32
    private let answer: @Sendable (ServerRequest) -> ServerAnswer
    private let state = Mutex(State())

    private struct State {
        var requests: [ServerRequest] = []
        var connections: [Socket] = []
        var count = 0
        var isEnded = false
    }

    /// Starts the server.
    /// - Parameter readingPause: the milliseconds between two reads of a body, each of 64 KiB at most.
    public init(
        on port: UInt16 = 0, readingPause: UInt32 = 0, _ answer: @escaping @Sendable (ServerRequest) -> ServerAnswer
    ) throws {
        (socket, self.port) = try Socket.listening(on: port)
        self.readingPause = readingPause
        if readingPause > 0 { socket.keepsLittle() }
        self.answer = answer
        onThread { [socket, weak self] in
            while let connection = socket.accept() {
                guard let self, let number = note(connection) else { return }
                onThread { [weak self] in self?.serve(connection, number) }
            }
        }
    }

    deinit { end() }

    /// The server's URL.
    public var url: String { "http://127.0.0.1:\(port)" }

    /// The requests that it has received.
    public var requests: [ServerRequest] {
        get { state.withLock { $0.requests } }
        set { state.withLock { $0.requests = newValue } }
    }

    /// The number of connections so far.
    public var connections: Int { state.withLock { $0.count } }

    /// The number of open connections.
    public var openConnections: Int { state.withLock { $0.connections.count } }

    /// Closes everything.
    public func end() {
        socket.end()
        let connections = state.withLock { state in
            state.isEnded = true
            return state.connections
        }
        for connection in connections { connection.end() }
    }

    private func note(_ connection: Socket) -> Int? {
        state.withLock { state in
            if state.isEnded { return nil }
            state.connections.append(connection)
            state.count += 1
            return state.count
        }
    }

    private func serve(_ connection: Socket, _ number: Int) {
        var reader = MessageReader(connection, pause: readingPause)
        while var request = reader.readRequest() {
            request.connection = number
            state.withLock { $0.requests.append(request) }
            let answer = self.answer(request)
            if !answer.hangs, !answer.write(to: connection) { break }
            if answer.hangs { while !connection.read().isEmpty {} }
            if answer.closes { break }
        }
        connection.end()
        state.withLock { $0.connections.removeAll { $0 === connection } }
    }
}

/// A request, as a server receives it.
public struct ServerRequest: Sendable {
    /// The method.
    public var method = ""
    /// The path as it was sent, with the query.
    public var path = ""
    /// The headers, by their names in lower case.
    public var headers: [String: String] = [:]
    /// The body.
    public var body: [UInt8] = []
    /// The whole request, as it arrived.
    public var bytes: [UInt8] = []
    /// The number of the connection, from 1.
    public var connection = 0
}

/// How a server answers a request.
public struct ServerAnswer: Sendable {
    /// The bytes to write.
    public var bytes: [UInt8]
    /// Whether the server then closes the connection.
    public var closes = false
    /// Whether the server writes nothing, and waits for the client to leave.
    public var hangs = false
    /// Unless 0, the server writes ten pieces, with so many milliseconds before each.
    public var pause: UInt32 = 0

    /// Makes an answer of some bytes.
    public init(bytes: [UInt8], closes: Bool = false) {
        (self.bytes, self.closes) = (bytes, closes)
    }

    /// Makes an answer from its parts.
    public init(_ status: Int, _ headers: KeyValuePairs<String, String> = [:], _ body: String = "") {
        let lines = headers.map { "\($0.key): \($0.value)\r\n" }.joined()
        let length = [204, 304].contains(status) ? "" : "Content-Length: \(body.utf8.count)\r\n"
        bytes = Array("HTTP/1.1 \(status) Answer\r\n\(lines)\(length)\r\n\(body)".utf8)
    }

    fileprivate func write(to connection: Socket) -> Bool {
        if pause == 0 { return connection.write(bytes) }
        let length = bytes.count / 10 + 1
        return stride(from: 0, to: bytes.count, by: length).allSatisfy { start in
            usleep(pause * 1000)
            return connection.write(Array(bytes[start..<min(start + length, bytes.count)]))
        }
    }

    /// No answer, ever.
    public static var nothing: ServerAnswer {
        var answer = ServerAnswer(bytes: [])
        answer.hangs = true
        return answer
    }

    /// An answer that takes ten seconds, a few bytes at a time.
    public static func dripping(_ status: Int, _ body: String = "") -> ServerAnswer {
        var answer = ServerAnswer(status, ["X": String(repeating: "x", count: 200)], body)
        answer.pause = 1000
        return answer
    }

    /// The end of the connection, without an answer.
    public static var cut: ServerAnswer { ServerAnswer(bytes: [], closes: true) }
}

/// Reads messages from a connection.
struct MessageReader {
    private let connection: Socket
    private let pause: UInt32
    private var buffer: [UInt8] = []

    init(_ connection: Socket, pause: UInt32 = 0) { (self.connection, self.pause) = (connection, pause) }

    mutating func readRequest() -> ServerRequest? {
        guard let head = readHead() else { return nil }
        var request = ServerRequest()
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let words = lines.first?.split(separator: " ") ?? []
        guard words.count == 3 else { return nil }
        (request.method, request.path) = (String(words[0]), String(words[1]))
        request.headers = Self.headers(lines.dropFirst())
        let length = Int(request.headers["content-length"] ?? "0") ?? 0
        while buffer.count < length {
            usleep(pause * 1000)
            let more = connection.read()
            if more.isEmpty { return nil }
            buffer += more
        }
        request.body = Array(buffer.prefix(length))
        buffer.removeFirst(length)
        request.bytes = head + request.body
        return request
    }

    /// Reads an answer. Returns its bytes, as they arrived, and its status.
    mutating func readAnswer(to method: String) -> (bytes: [UInt8], status: Int)? {
        guard let head = readHead() else { return nil }
        let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n")
        let status = Int(lines.first?.split(separator: " ").dropFirst().first ?? "") ?? 0
        let headers = Self.headers(lines.dropFirst())
        if method == "HEAD" { return (head, status) }
        if headers["transfer-encoding"]?.lowercased() == "chunked" {
            while !Self.isWhole(chunks: buffer) {
                let more = connection.read()
                if more.isEmpty { return nil }
                buffer += more
            }
        } else if let length = headers["content-length"].flatMap(Int.init) {
            while buffer.count < length {
                let more = connection.read()
                if more.isEmpty { return nil }
                buffer += more
            }
        }
        return (head + buffer, status)
    }

    /// Whether a body in chunks is complete, trailers included.
    private static func isWhole(chunks: [UInt8]) -> Bool {
        let lineEnd = Array("\r\n".utf8)
        var rest = chunks[...]
        while let line = rest.firstRange(of: lineEnd) {
            guard let size = Int(String(decoding: rest[..<line.lowerBound], as: UTF8.self), radix: 16) else {
                return false
            }
            rest = rest[line.upperBound...]
            if size == 0 { return rest.elementsEqual(lineEnd) || rest.suffix(4).elementsEqual(lineEnd + lineEnd) }
            if rest.count < size + 2 { return false }
            rest = rest.dropFirst(size + 2)
        }
        return false
    }

    /// Reads the lines up to the empty one, and that one.
    private mutating func readHead() -> [UInt8]? {
        let end = Array("\r\n\r\n".utf8)
        while true {
            if let range = buffer.firstRange(of: end) {
                defer { buffer.removeSubrange(..<range.upperBound) }
                return Array(buffer[..<range.upperBound])
            }
            let more = connection.read()
            if more.isEmpty { return nil }
            buffer += more
        }
    }

    private static func headers(_ lines: ArraySlice<String.SubSequence>) -> [String: String] {
        var headers: [String: String] = [:]
        for line in lines {
            guard let colon = line.firstIndex(of: ":") else { continue }
            headers[line[..<colon].lowercased()] = String(line[line.index(after: colon)...].drop { $0 == " " })
        }
        return headers
    }
}
