// SPDX-License-Identifier: Apache-2.0

import EventLoop
import Foundation
import RemoteAddress
import ServerTesting
import Synchronization
import Testing

@testable import HTTPClient

/// A client, and a server on loopback that answers as each test scripts it.
@Suite(.timeLimit(.minutes(30)))
struct HTTPClientTests {
    private func address(_ server: ScriptedServer, _ path: String = "/dav/") throws -> HTTPAddress {
        try #require(HTTPAddress(server.url + path))
    }

    private func options(_ credentials: HTTPCredentials = .none) -> HTTPOptions {
        HTTPOptions(credentials: credentials)
    }

    private func failure(_ body: () async throws -> Void) async -> HTTPFailure? {
        do { try await body() } catch { return error as? HTTPFailure }
        return nil
    }

    @Test func `names of certificates are read again once their directory has changed`() async throws {
        let directory = FileManager.default.temporaryDirectory.appending(path: "certs-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: directory) }
        for _ in 1...2 { #expect(await !Authorities.areHashed(in: directory.path)) }
        try Data().write(to: directory.appending(path: "0123abcd.0"))
        for _ in 1...2 { #expect(await Authorities.areHashed(in: directory.path)) }
    }

    @Test func `names are looked up by whoever makes a client, and libcurl connects to what was found`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(200, [:], "x") }
        let port = try #require(HTTPAddress(server.url)).port
        let names = Mutex<[String]>([])
        var options = options()
        options.lookUp = { lookup in
            names.withLock { $0.append(lookup.host) }
            lookup.end(lookup.host.hasPrefix("nobody") ? nil : ["127.0.0.1"])
        }
        let client = HTTPClient(options)
        for host in ["dav.example", "dav.example", "dav.example.", "127.1.1.1.1"] {
            let place = HTTPAddress(isSecure: false, host: host, port: port, path: "/")
            #expect(try await client.send(HTTPRequest("GET", place)).status == 200, "\(host)")
        }
        let nobody = HTTPAddress(isSecure: false, host: "nobody.example", port: port, path: "/")
        let error = await failure { _ = try await client.send(HTTPRequest("GET", nobody)) }
        #expect(error == .nameUnknown("nobody.example"))
        #expect(
            names.withLock(\.self) == ["dav.example", "dav.example.", "127.1.1.1.1", "nobody.example"])
        // Addresses and this machine's own name need no lookup.
        _ = try await client.send(HTTPRequest("GET", address(server)))
        #expect(names.withLock(\.count) == 4)
    }

    @Test func `a header that is one long character is dropped`() async throws {
        let text = "a" + String(repeating: "\u{301}\u{327}", count: 6_000)
        let server = try ScriptedServer { _ in ServerAnswer(200, ["ETag": text, "Short": "\u{e9}", text: "x"], "x") }
        let client = HTTPClient(options())
        for _ in 0..<50 {
            let response = try await client.send(HTTPRequest("GET", address(server)))
            #expect(response.status == 200 && response.headers["etag"] == nil)
            #expect(response.headers["short"] == "\u{e9}" && response.headers["content-length"] == "1")
        }
    }

    // MARK: Requests

    @Test func `a request has its method, headers and length, and an answer its status, headers and body`() async throws
    {
        let server = try ScriptedServer { _ in ServerAnswer(207, ["X-Made-Up": " some thing "], "answer") }
        let client = HTTPClient(options())
        let body = Array("ask".utf8)
        let response = try await client.send(
            HTTPRequest("PROPFIND", address(server), headers: [("Depth", "1")], body: body))
        #expect(response.status == 207)
        #expect(response.headers["x-made-up"] == "some thing ")
        #expect(response.body == Array("answer".utf8))
        let request = try #require(server.requests.first)
        #expect(request.method == "PROPFIND" && request.path == "/dav/" && request.body == body)
        #expect(request.headers["depth"] == "1" && request.headers["content-length"] == "3")
        #expect(request.headers["accept-encoding"] == "identity")
        #expect(request.headers["content-type"] == nil && request.headers["transfer-encoding"] == nil)
        #expect(request.headers["expect"] == nil)
    }

    @Test(arguments: [0, 1, 3 << 20]) func `whatever is put arrives whole`(count: Int) async throws {
        let server = try ScriptedServer { _ in ServerAnswer(201) }
        let body = (0..<count).map { UInt8(truncatingIfNeeded: $0) }
        let response = try await HTTPClient(options()).send(HTTPRequest("PUT", address(server), body: body))
        #expect(response.status == 201)
        #expect(server.requests.first?.body == body)
        #expect(server.requests.first?.headers["content-length"] == "\(count)")
    }

    @Test func `requests that follow each other share a connection`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(200, [:], "x") }
        let client = HTTPClient(options())
        for _ in 0..<5 { _ = try await client.send(HTTPRequest("GET", address(server))) }
        // An idle one is closed after a while, which a busy machine may take between two requests.
        #expect(server.connections < 5)
    }

    @Test func `a connection on which nothing is asked any more is closed`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(200, [:], "x") }
        var options = HTTPOptions()
        options.keepTime = .milliseconds(50)
        let client = HTTPClient(options)
        for _ in 0..<2 {
            _ = try await client.send(HTTPRequest("GET", address(server)))
            while server.openConnections > 0 { try await Task.sleep(for: .milliseconds(5)) }
        }
    }

    @Test func `requests at once are answered each on its own`() async throws {
        let server = try ScriptedServer { ServerAnswer(200, [:], $0.path) }
        let client = HTTPClient(options())
        let base = try address(server, "/")
        try await withThrowingTaskGroup(of: (String, [UInt8]).self) { group in
            for number in 0..<20 {
                group.addTask {
                    var address = base
                    address.path = "/\(number)"
                    return (address.path, try await client.send(HTTPRequest("GET", address)).body)
                }
            }
            for try await (path, body) in group { #expect(body == Array(path.utf8)) }
        }
    }

    // MARK: Credentials

    @Test func `a digest server is proved the password without being told it, and not asked again each time`()
        async throws
    {
        let server = try ScriptedServer { request in
            if request.headers["authorization"]?.contains("nonce=\"n0nce\"") == true { return ServerAnswer(200) }
            return ServerAnswer(
                401, ["WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", nonce=\"n0nce\", algorithm=MD5"])
        }
        let client = HTTPClient(options(.password(user: "ada", password: "s3cret")))
        for _ in 0..<4 {
            #expect(try await client.send(HTTPRequest("PUT", address(server), body: [1, 2])).status == 200)
        }
        #expect(server.requests.last?.body == [1, 2])
        #expect(server.requests.count <= 6, "a question, a probe, and four that are proved")
        #expect(!server.requests.contains { ($0.headers["authorization"] ?? "").hasPrefix("Basic") })
    }

    @Test func `a basic server is told the password once it asks for it, and a token is sent as it is`() async throws {
        let server = try ScriptedServer { request in
            request.headers["authorization"] == nil
                ? ServerAnswer(401, ["WWW-Authenticate": "Basic realm=\"r\""]) : ServerAnswer(200)
        }
        let client = HTTPClient(options(.password(user: "ada", password: "päss:wort")))
        for _ in 0..<2 { #expect(try await client.send(HTTPRequest("GET", address(server))).status == 200) }
        #expect(server.requests.map { $0.headers["authorization"] }.suffix(2) == [basic, basic])
        #expect(server.requests.count == 3)
        server.requests = []
        let other = HTTPClient(options(.token("t0ken")))
        #expect(try await other.send(HTTPRequest("GET", address(server))).status == 200)
        #expect(server.requests.map { $0.headers["authorization"] } == ["Bearer t0ken"])
    }

    private let basic = "Basic YWRhOnDDpHNzOndvcnQ="

    @Test(arguments: [200, 206, 302, 303, 403, 429, 503])
    func `nobody who has not asked for a password is told it where everybody can listen`(status: Int) async throws {
        let isBack = Mutex(false)
        let server = try ScriptedServer { request in
            if request.headers["authorization"]?.contains("nonce=\"n0nce\"") == true { return ServerAnswer(204) }
            if isBack.withLock(\.self) {
                return ServerAnswer(401, ["WWW-Authenticate": "Digest realm=\"r\", qop=\"auth\", nonce=\"n0nce\""])
            }
            return request.path == "/login" ? ServerAnswer(200) : ServerAnswer(status, ["Location": "/login"])
        }
        let client = HTTPClient(options(.password(user: "ada", password: "s3cret")))
        let first = try await client.send(HTTPRequest("PUT", address(server), body: [1]))
        #expect(first.status == (status == 302 ? 200 : status))
        isBack.withLock { $0 = true }
        #expect(try await client.send(HTTPRequest("PUT", address(server), body: [1])).status == 204)
        #expect(!server.requests.contains { ($0.headers["authorization"] ?? "").hasPrefix("Basic") })
    }

    @Test func `a server that need not be told the password is not told it later`() async throws {
        let challenge = Mutex("Digest realm=\"r\", qop=\"auth\", nonce=\"n0nce\"")
        let server = try ScriptedServer { _ in ServerAnswer(401, ["WWW-Authenticate": challenge.withLock(\.self)]) }
        let client = HTTPClient(options(.password(user: "ada", password: "s3cret")))
        #expect(try await client.send(HTTPRequest("GET", address(server))).status == 401)
        challenge.withLock { $0 = "Basic realm=\"r\"" }
        #expect(try await client.send(HTTPRequest("GET", address(server))).status == 401)
        #expect(server.requests.contains { ($0.headers["authorization"] ?? "").hasPrefix("Digest") })
        #expect(!server.requests.contains { ($0.headers["authorization"] ?? "").hasPrefix("Basic") })
    }

    @Test func `an answer that is too long is so before anything is proved`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(206, [:], String(repeating: "x", count: 1 << 20)) }
        let client = HTTPClient(options(.password(user: "ada", password: "s3cret")))
        let failure = await failure { _ = try await client.send(HTTPRequest("GET", address(server), limit: 1000)) }
        #expect(failure == .tooLarge("127.0.0.1"))
        #expect(server.requests.count == 1)
    }

    @Test(
        arguments: [
            ("Basic realm=\"Company Digest Server\"", .basic), ("basic", .basic),
            ("Basic realm=\"a, Digest b\", charset=\"UTF-8\"", .basic),
            ("Basic realm=\"a\\\", Digest b\"", .basic), ("Basic realm=Digest", .basic),
            ("Negotiate, Basic realm=\"r\", Digest realm=\"r\", nonce=\"x\"", .digest),
            ("DIGEST realm=\"r\",nonce=\"x\"", .digest), ("Bearer realm=\"Basic\"", nil), ("", nil),
        ] as [(String, HTTPScheme?)])
    func `what a server asks for is what its challenges begin with`(_ challenges: String, _ scheme: HTTPScheme?) {
        var response = HTTPResponse()
        response.headers = ["www-authenticate": challenges]
        #expect(HTTPScheme(response) == nil, "it is no refusal")
        response.status = 401
        #expect(HTTPScheme(response) == scheme)
    }

    @Test(arguments: ["a\r\nHost: b", "a\0b", "a\u{7F}"])
    func `a name or a password with control characters is sent to nobody`(_ text: String) async throws {
        let server = try ScriptedServer { _ in
            ServerAnswer(401, ["WWW-Authenticate": "Digest realm=\"r\", nonce=\"x\""])
        }
        for (user, password) in [(text, "s3cret"), ("ada", text)] {
            let client = HTTPClient(options(.password(user: user, password: password)))
            let failure = await failure { _ = try await client.send(HTTPRequest("GET", address(server))) }
            #expect(failure == .unsendable("the user's name or the password has control characters in it"))
        }
        #expect(server.requests.isEmpty)
    }

    @Test func `a wrong password is an answer, after few tries`() async throws {
        for challenge in ["Basic realm=\"r\"", "Digest realm=\"r\", nonce=\"x\", qop=\"auth\""] {
            let server = try ScriptedServer { _ in ServerAnswer(401, ["WWW-Authenticate": challenge]) }
            let client = HTTPClient(options(.password(user: "ada", password: "wrong")))
            #expect(try await client.send(HTTPRequest("PUT", address(server), body: [1])).status == 401)
            #expect(server.requests.count <= 3)
        }
    }

    @Test func `a server that calls each proof stale is given up`() async throws {
        let challenge = #"Digest realm="r", nonce="n", qop="auth", stale=true"#
        let server = try ScriptedServer { _ in ServerAnswer(401, ["WWW-Authenticate": challenge]) }
        let credentials = HTTPCredentials.password(user: "ada", password: "s3cret")
        let failure = await failure {
            _ = try await HTTPClient(options(credentials)).send(HTTPRequest("GET", address(server)))
        }
        #expect(failure == .tooLarge("127.0.0.1"))
    }

    @Test func `a header can't be made of a token`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(200) }
        let failure = await failure {
            _ = try await HTTPClient(options(.token("a\r\nHost: b"))).send(HTTPRequest("GET", address(server)))
        }
        #expect(failure == .unsendable("a header has control characters in it"))
        #expect(server.requests.isEmpty)
    }

    @Test func `credentials do not show when they are printed`() {
        for credentials in [HTTPCredentials.password(user: "ada", password: "s3cret"), .token("s3cret")] {
            #expect(!"\(credentials) \(String(reflecting: HTTPOptions(credentials: credentials)))".contains("s3cret"))
        }
    }

    // MARK: Redirections

    @Test(arguments: [301, 302, 307, 308])
    func `what the same server sends to is asked the same`(status: Int) async throws {
        let server = try ScriptedServer {
            $0.path == "/new/" ? ServerAnswer(200) : ServerAnswer(status, ["Location": "../new/"])
        }
        let client = HTTPClient(options(.token("t0ken")))
        let response = try await client.send(HTTPRequest("PUT", address(server, "/old/"), body: [7]))
        #expect(response.status == 200)
        let last = try #require(server.requests.last)
        #expect(last.method == "PUT" && last.body == [7] && last.headers["authorization"] == "Bearer t0ken")
    }

    @Test func `credentials never go to another port, host or scheme`() async throws {
        let other = try ScriptedServer { _ in ServerAnswer(200) }
        let places = [
            "http://127.0.0.1:\(other.port)/dav/", "//127.0.0.1:\(other.port)/", "https://127.0.0.1/",
            "http://evil.example/",
            "ftp://127.0.0.1/", "file:///etc/passwd",
        ]
        for place in places {
            let server = try ScriptedServer { _ in ServerAnswer(302, ["Location": place]) }
            let failure = await failure {
                let client = HTTPClient(options(.password(user: "ada", password: "s3cret")))
                _ = try await client.send(HTTPRequest("GET", address(server)))
            }
            #expect(failure != nil, "\(place)")
            #expect(!"\(failure, default: "")".contains("s3cret"))
        }
        #expect(other.requests.isEmpty)
    }

    @Test func `a circle of redirections ends`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(302, ["Location": "/dav/"]) }
        let failure = await failure { _ = try await HTTPClient(options()).send(HTTPRequest("GET", address(server))) }
        #expect(failure == .redirections("127.0.0.1"))
        #expect(server.requests.count <= 6)
    }

    // MARK: Servers that do not behave

    @Test func `a server that never answers is given up`() async throws {
        let server = try ScriptedServer { _ in .nothing }
        var options = HTTPOptions()
        options.stallTime = .seconds(1)
        let client = HTTPClient(options)
        let failure = await failure { _ = try await client.send(HTTPRequest("GET", address(server))) }
        #expect(failure == .timedOut("127.0.0.1"))
    }

    // MARK: Silence

    /// The limit. Each transfer takes longer, but on an idle machine it is never silent for a quarter as long.
    private static let limit = HTTPRequest.Patience.silence(.seconds(3))

    @Test func `an answer that comes slowly is no silence`() async throws {
        var answer = ServerAnswer(200, [:], String(repeating: "x", count: 1000))
        answer.pause = 400
        let server = try ScriptedServer { [answer] _ in answer }
        var request = HTTPRequest("GET", try address(server))
        request.patience = Self.limit
        #expect(try await HTTPClient(options()).send(request).body.count == 1000)
    }

    @Test func `an answer that begins after the usual time is waited for`() async throws {
        let server = try ScriptedServer { _ in
            usleep(2_500_000)
            return ServerAnswer(200)
        }
        var (options, request) = (HTTPOptions(), HTTPRequest("GET", try address(server)))
        (options.stallTime, options.wholeTime) = (.seconds(1), .seconds(2))
        request.patience = .silence(.seconds(60))
        #expect(try await HTTPClient(options).send(request).status == 200)
    }

    @Test func `a request that goes slowly is no silence`() async throws {
        let server = try ScriptedServer(readingPause: 50) { _ in ServerAnswer(201) }
        let body = [UInt8](repeating: 1, count: 6 << 20)
        var request = HTTPRequest("PUT", try address(server), body: body)
        request.patience = Self.limit
        #expect(try await HTTPClient(options()).send(request).status == 201)
        #expect(server.requests.first?.body == body)
    }

    @Test(arguments: [[], Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".utf8)])
    func `a server that says nothing, or nothing more, is given up`(_ bytes: [UInt8]) async throws {
        let server = try ScriptedServer { _ in bytes.isEmpty ? .nothing : ServerAnswer(bytes: bytes) }
        let client = HTTPClient(options())
        var request = HTTPRequest("PUT", try address(server), body: [1])
        request.patience = .silence(.milliseconds(50))
        let failure = await failure { _ = try await client.send(request) }
        #expect(failure == .timedOut("127.0.0.1"))
        while server.openConnections > 0 { try await Task.sleep(for: .milliseconds(5)) }
    }

    @Test func `whoever closes the client is not kept by a server that never answers`() async throws {
        let server = try ScriptedServer { _ in .nothing }
        let client = HTTPClient(HTTPOptions())
        let place = try address(server)
        let request = Task { try await client.send(HTTPRequest("GET", place)) }
        while server.requests.isEmpty { try await Task.sleep(for: .milliseconds(5)) }
        client.close()
        #expect(await failure { _ = try await request.value } == .closed)
        #expect(await failure { _ = try await client.send(HTTPRequest("GET", place)) } == .closed)
    }

    @Test func `an answer is cut off where it is longer than it may be`() async throws {
        let server = try ScriptedServer { request in
            switch request.path {
            case "/body": return ServerAnswer(200, [:], String(repeating: "x", count: 1 << 20))
            case "/headers":
                let lines = (0..<2000).map { "X-\($0): \(String(repeating: "x", count: 100))\r\n" }.joined()
                return ServerAnswer(bytes: Array("HTTP/1.1 200 OK\r\n\(lines)Content-Length: 0\r\n\r\n".utf8))
            case "/chunks":
                let chunk = "10000\r\n\(String(repeating: "x", count: 0x10000))\r\n"
                let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + String(repeating: chunk, count: 20)
                return ServerAnswer(bytes: Array(text.utf8))
            default: return ServerAnswer(500, [:], String(repeating: "x", count: 100_000))
            }
        }
        for path in ["/body", "/headers", "/chunks"] {
            let failure = await failure {
                _ = try await HTTPClient(options()).send(HTTPRequest("GET", address(server, path), limit: 1 << 16))
            }
            #expect(failure == .tooLarge("127.0.0.1"), "\(path)")
        }
        let response = try await HTTPClient(options()).send(HTTPRequest("GET", address(server, "/error"), limit: 100))
        #expect(response.status == 500 && response.body.count == 100)
    }

    /// libcurl joins what it has read when it pauses into one piece.
    @Test func `a body in pieces of a byte pauses for the loop's next turn, and arrives whole`() async throws {
        let count = 300_000
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + String(repeating: "1\r\nx\r\n", count: count)
        let server = try ScriptedServer { _ in ServerAnswer(bytes: Array((text + "0\r\n\r\n").utf8)) }
        var request = HTTPRequest("GET", try address(server), limit: count)
        let pieces = Mutex(0)
        request.mayKeep = { _ in
            pieces.withLock { $0 += 1 }
            return true
        }
        let response = try await HTTPClient(options()).send(request)
        #expect(response.body == [UInt8](repeating: UInt8(ascii: "x"), count: count))
        #expect(pieces.withLock(\.self) < count / 2)
    }

    @Test func `what libcurl has kept in a pause and is refused then ends the request`() async throws {
        let text =
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + String(repeating: "1\r\nx\r\n", count: 2000)
        let server = try ScriptedServer { _ in ServerAnswer(bytes: Array(text.utf8)) }
        var request = HTTPRequest("GET", try address(server), limit: 2000)
        request.mayKeep = { $0 == 1 }
        let failure = await failure { _ = try await HTTPClient(options()).send(request) }
        #expect(failure == .noRoom("127.0.0.1"))
    }

    @Test func `what is taken as it comes may be ended by who takes it`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(207, [:], String(repeating: "x", count: 1 << 20)) }
        let taken = Mutex(0)
        let sink = HTTPRequest.Sink(status: 207) { bytes in
            taken.withLock { $0 += bytes.count }
            return true
        }
        let response = try await HTTPClient(options()).send(HTTPRequest("GET", address(server), limit: 10, sink: sink))
        #expect(response.body.isEmpty && taken.withLock(\.self) == 1 << 20)
        let refusing = HTTPRequest.Sink(status: 207) { _ in false }
        let failure = await failure {
            _ = try await HTTPClient(options()).send(HTTPRequest("GET", address(server), sink: refusing))
        }
        #expect(failure == .tooLarge("127.0.0.1"))
    }

    @Test func `every way in which a server can fail has its name`() async throws {
        let answers: [(ServerAnswer, HTTPFailure)] = [
            (.cut, .cut("127.0.0.1")),
            (ServerAnswer(bytes: Array("SSH-2.0-OpenSSH_9.2\r\n".utf8), closes: true), .corrupt("127.0.0.1")),
            (
                ServerAnswer(bytes: Array("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nabc".utf8), closes: true),
                .cut("127.0.0.1")
            ),
        ]
        let framed: [(String, HTTPFailure)] = [
            ("Transfer-Encoding: chunked\r\n\r\n8000000000000000\r\nabc", .cut("127.0.0.1")),
            ("Transfer-Encoding: chunked\r\n\r\n-1\r\nabc", .cut("127.0.0.1")),
            ("Transfer-Encoding: chunked\r\n\r\n1;\(String(repeating: "x", count: 100_000))", .cut("127.0.0.1")),
            (
                "Transfer-Encoding: chunked\r\n\r\n0\r\n\(String(repeating: "X: y\r\n", count: 20_000))",
                .tooLarge("127.0.0.1")
            ),
            ("Content-Length: -5\r\n\r\nabc", .corrupt("127.0.0.1")),
            ("X: a\0b\r\n\r\n", .corrupt("127.0.0.1")),
            ("\r\n\(String(repeating: "HTTP/1.1 102 Wait\r\n\r\n", count: 5000))", .tooLarge("127.0.0.1")),
        ]
        let others = framed.map { (text, failure) in
            let status = text.hasPrefix("\r\n") ? "102 Wait" : "200 OK"
            return (ServerAnswer(bytes: Array("HTTP/1.1 \(status)\r\n\(text)".utf8), closes: true), failure)
        }
        for (answer, expected) in answers + others {
            let server = try ScriptedServer { _ in answer }
            let failure = await failure {
                _ = try await HTTPClient(options()).send(HTTPRequest("GET", address(server)))
            }
            #expect(failure == expected, "\(String(decoding: answer.bytes.prefix(100), as: UTF8.self))")
        }
        let gone = try ScriptedServer { _ in .cut }
        let place = try address(gone)
        gone.end()
        while await failure({ _ = try await HTTPClient(options()).send(HTTPRequest("GET", place)) })
            != .refused("127.0.0.1:\(gone.port)")
        {}
        let nobody = try #require(HTTPAddress("http://nobody.invalid/"))
        #expect(
            await failure { _ = try await HTTPClient(options()).send(HTTPRequest("GET", nobody)) }
                == .nameUnknown("nobody.invalid"))
    }

    @Test func `when to ask again is said in seconds or as a date by the server's clock`() async throws {
        let headers: [(KeyValuePairs<String, String>, Int?)] = [
            (["Retry-After": "120"], 120), (["Retry-After": "-5"], 0), (["Retry-After": "soon"], nil), ([:], nil),
            (["Retry-After": "100000000000000000000"], nil), (["Retry-After": "9223372036854775807"], .max),
            (["Retry-After": "-9223372036854775808"], 0),
            (["Date": "Sun, 06 Nov 1994 08:49:37 GMT", "Retry-After": "Sun, 06 Nov 1994 08:50:37 GMT"], 60),
            (["Date": "Sunday, 06-Nov-94 08:49:37 GMT", "Retry-After": "Sun Nov  6 08:49:07 1994"], 0),
        ]
        for (headers, expected) in headers {
            let server = try ScriptedServer { _ in ServerAnswer(503, headers) }
            let response = try await HTTPClient(options()).send(HTTPRequest("GET", address(server)))
            #expect(response.retryAfter == expected)
            #expect(response.date == (headers.count == 2 ? 784_111_777 : nil))
        }
    }

    // MARK: Certificates

    private static let secure = [WebDAVServer.Kind.nginx, .apache, .rclone].first { $0.program != nil }

    @Test(.enabled(if: secure != nil, "no server with TLS is installed; script/bootstrap --all installs some"))
    func `the system's authorities are found by their names, and nobody else is trusted`() async throws {
        let server = try WebDAVServer(#require(Self.secure), isSecure: true)
        let place = try #require(HTTPAddress("https://127.0.0.1:\(server.port)/dav/nothing"))
        var options = HTTPOptions()
        options.systemAuthorities = try server.makeAuthorities()
        #expect(try await HTTPClient(options).send(HTTPRequest("GET", place)).status == 404)
        options.systemAuthorities = Authorities.system
        let failure = await failure { _ = try await HTTPClient(options).send(HTTPRequest("GET", place)) }
        guard case .certificate("127.0.0.1", _) = failure else {
            Issue.record("\(String(describing: failure))")
            return
        }
    }

    /// The connection that is kept from the request before has an error of its own.
    @Test(arguments: [WebDAVServer.Kind.apache, .nginx].filter { $0.program != nil })
    func `a certificate that has changed is named as the reason`(_ kind: WebDAVServer.Kind) async throws {
        let server = try WebDAVServer(kind, isSecure: true)
        let place = try #require(HTTPAddress("https://127.0.0.1:\(server.port)/dav/nothing"))
        let client = HTTPClient(HTTPOptions(authority: server.authority))
        #expect(try await client.send(HTTPRequest("GET", place)).status == 404)
        try server.changeCertificate()
        let failure = await failure { _ = try await client.send(HTTPRequest("GET", place)) }
        #expect(failure == .certificate("127.0.0.1", reason: "unable to get local issuer certificate"))
    }

    /// libcurl decompresses what nobody has asked for, on the loop's thread.
    @Test(arguments: [
        "gzip", "gzip, chunked", "chunked\r,gzip", "\u{b}deflate", "br", "zstd", "x-unknown",
        "chunked\r\nTransfer-Encoding: gzip",
    ])
    func `an answer that is compressed on its way is refused`(_ coding: String) async throws {
        let text = "HTTP/1.1 200 OK\r\nTRANSFER-encoding: \(coding)\r\n\r\n"
        let server = try ScriptedServer { _ in ServerAnswer(bytes: Array(text.utf8), closes: true) }
        let failure = await failure {
            _ = try await HTTPClient(HTTPOptions()).send(HTTPRequest("GET", address(server)))
        }
        #expect(failure == .corrupt("127.0.0.1"))
    }

    @Test(arguments: ["chunked", "Chunked", " chunked \t", "identity"])
    func `an answer in chunks, or as it is, is read`(_ coding: String) async throws {
        let body = coding == "identity" ? "x" : "1\r\nx\r\n0\r\n\r\n"
        let text = "HTTP/1.1 200 OK\r\nTransfer-Encoding:\(coding)\r\n\r\n" + body
        let server = try ScriptedServer { _ in ServerAnswer(bytes: Array(text.utf8), closes: true) }
        #expect(try await HTTPClient(HTTPOptions()).send(HTTPRequest("GET", address(server))).body == Array("x".utf8))
    }

    /// TLS runs on the loop's thread, where a slow handshake delays every caller.
    @Test(arguments: [["-tls1_2"], ["-tls1_3"], ["-tls1_2", "-cipher", "DHE"], ["-tls1_3", "-groups", "ffdhe8192"]])
    func `a server doesn't get to choose a prime, which may be as large as it likes`(_ options: [String]) async throws {
        let server = try TLSServer(options)
        let outcome = try await outcome(of: server)
        #expect(outcome == (options.count == 1 ? "200" : "no connection"))
    }

    @Test func `a certificate for another name is named as the reason, and no authority is asked for`() async throws {
        let server = try TLSServer(hosts: "DNS:dav.example")
        #expect(try await outcome(of: server) == HTTPFailure.otherName)
        let failure = HTTPFailure.certificate("127.0.0.1", reason: HTTPFailure.otherName)
        #expect(failure.description.contains("Give the address with a name that is in the certificate"))
        #expect(!failure.isAuthorityUnknown)
    }

    @Test(arguments: [(8, "200"), (9, "certificate chain too long")])
    func `a server has few certificates checked`(_ intermediates: Int, _ expected: String) async throws {
        let server = try TLSServer(intermediates: intermediates)
        #expect(try await outcome(of: server) == expected)
    }

    /// OpenSSL compares each name in a certificate with each constraint above it, on the loop's thread.
    @Test(arguments: [(15, "200"), (150, "it has too many names, and constraints on names, to compare")])
    func `a server's certificates have few names and constraints`(_ names: Int, _ expected: String) async throws {
        #expect(try await outcome(of: TLSServer(intermediates: 2, names: names)) == expected)
    }

    /// A user's authority may have constraints, too.
    @Test func `an authority has few constraints`() async throws {
        let outcome = try await outcome(of: TLSServer(names: 300))
        #expect(outcome == "it has too many names, and constraints on names, to compare")
    }

    /// OpenSSL copies the issuer's name for each of the points, and computes the points of a curve.
    @Test(arguments: [(1, "200"), (200, "it has too many names, and constraints on names, to compare")])
    func `a server's certificate has few CRL distribution points`(_ points: Int, _ expected: String) async throws {
        let places = (0..<points).map { "URI:http://\(String(repeating: "a", count: 60)).example/\($0)" }
        let server = try TLSServer(extensions: "crlDistributionPoints=" + places.joined(separator: ",") + "\n")
        #expect(try await outcome(of: server) == expected)
    }

    @Test(arguments: ["-tls1_2", "-tls1_3"])
    func `a certificate with a curve of its own is refused before it is read`(_ version: String) async throws {
        #expect(try await outcome(of: TLSServer([version])) == "200")
        #expect(try await outcome(of: TLSServer([version], sendsCurve: true)) == "no connection")
    }

    @Test func `an authority is a certificate that is read at once`() async throws {
        let server = try TLSServer()
        #expect(PEM.simpleCertificates(in: server.authority) == server.authority)
        #expect(PEM.simpleCertificates(in: server.authority + server.authority) == server.authority + server.authority)
        let text = String(decoding: server.authority, as: UTF8.self)
        let varied = "\u{FEFF}# a comment\r\n\(text.replacing("\n", with: " \r\n"))"
        #expect(PEM.simpleCertificates(in: Array(varied.utf8)) == server.authority)
        for pem in [
            server.curve, server.authority + server.curve, server.authority.dropLast(30),
            Array(text.replacing("CERTIFICATE", with: "PRIVATE KEY").utf8),
        ] {
            #expect(PEM.simpleCertificates(in: Array(pem)) == nil)
            let client = HTTPClient(HTTPOptions(authority: Array(pem)))
            let place = try #require(HTTPAddress(server.url + "/"))
            #expect(await failure { _ = try await client.send(HTTPRequest("GET", place)) } == .authority)
        }
        let points: [(length: [UInt8], size: Int, isSimple: Bool)] = [
            ([3], 4000, true), ([3], 5000, false), ([0x81, 3], 5000, false),
        ]
        for (length, size, isSimple) in points {
            let bytes: [UInt8] = [6] + length + [0x55, 0x1D, 0x1F] + Array(repeating: 0, count: size)
            let pem = "-----BEGIN CERTIFICATE-----\n\(Data(bytes).base64EncodedString())\n-----END CERTIFICATE-----\n"
            #expect((PEM.simpleCertificates(in: Array(pem.utf8)) != nil) == isSimple)
        }
        // OpenSSL sees a block in a line that is longer than its buffer; it doesn't get that line.
        for text in ["\u{FEFF}\u{FEFF}", String(repeating: "x", count: 254)] {
            let hidden = Array(text.utf8) + server.curve
            #expect(PEM.simpleCertificates(in: hidden) == nil)
            #expect(PEM.simpleCertificates(in: server.authority + hidden) == server.authority)
        }
    }

    @Test func `a server doesn't send certificates as long as it likes`() async throws {
        #expect(try await outcome(of: TLSServer(names: 1500)) == "no connection")
    }

    /// OpenSSL skips requests for a handshake during one, and would read on until there is another message. A record has
    /// one of these requests, or as many as fit.
    @Test(arguments: [1, 4096])
    func `a server that asks for handshakes without end doesn't keep the loop`(_ count: Int) async throws {
        let size = 4 * count
        let record: [UInt8] = [22, 3, 3, UInt8(size >> 8), UInt8(size & 255)] + Array(repeating: 0, count: size)
        let server = try FloodServer(record, atMost: 256 << 20)
        let place = try #require(HTTPAddress("https://127.0.0.1:\(server.port)/"))
        let failure = await failure { _ = try await HTTPClient(HTTPOptions()).send(HTTPRequest("GET", place)) }
        guard case .secureConnection("127.0.0.1", _) = failure else {
            Issue.record("\(failure as Any)")
            return
        }
        #expect(server.sent < 64 << 20)
    }

    /// OpenSSL would read on until there is an answer.
    @Test func `a server that sends tickets without end doesn't keep the loop`() async throws {
        let server = try TLSServer(["-tls1_3", "-num_tickets", "10000"])
        var options = HTTPOptions(authority: server.authority)
        let told = Mutex<[UInt64]>([])
        options.whenBusy = { time in told.withLock { $0.append(time) } }
        // The tickets are no bytes of an answer, and take long on a busy machine.
        (options.connectTime, options.stallTime) = (.seconds(300), .seconds(300))
        let place = try #require(HTTPAddress(server.url + "/"))
        // While other processes run, the work may be spread so thinly that no rest is due.
        for _ in 0..<50 where told.withLock(\.isEmpty) {
            let client = HTTPClient(options)
            #expect(try await client.send(HTTPRequest("GET", place)).status == 200)
            // The server has one connection at a time.
            client.close()
        }
        let times = told.withLock(\.self)
        #expect(!times.isEmpty && times.allSatisfy { $0 < 250_000 }, "\(times)")
    }

    @Test(arguments: [
        (["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"], "it doesn't support TLS 1.2"),
        (
            ["-tls1_2", "-Verify", "1"],
            "it supports none of the methods that this device offers, or it requires a client certificate, which this "
                + "service doesn't support"
        ),
    ]) func `a server that refuses a secure connection is not said to have none`(
        _ options: [String], _ clause: String
    ) async throws {
        let server = try TLSServer(options)
        let client = HTTPClient(HTTPOptions(authority: server.authority))
        let place = try #require(HTTPAddress(server.url + "/"))
        let failure = await failure { _ = try await client.send(HTTPRequest("GET", place)) }
        #expect(failure == .secureConnectionRefused("127.0.0.1", clause: clause))
    }

    private func outcome(of server: TLSServer) async throws -> String {
        let client = HTTPClient(HTTPOptions(authority: server.authority))
        let place = try #require(HTTPAddress(server.url + "/"))
        do throws(HTTPFailure) { return "\(try await client.send(HTTPRequest("GET", place)).status)" } catch {
            switch error {
            case .secureConnection, .secureConnectionRefused: return "no connection"
            case .certificate(_, let reason): return reason
            default: return "\(error)"
            }
        }
    }

    // MARK: Proxies

    @Test(arguments: [
        ("Uses proxy env variable https_proxy == 'http://eve:s3cret@proxy.example:3128/'\n", "proxy.example:3128"),
        ("Uses proxy env variable https_proxy == 'eve:s3@cr/et@proxy.example'\n", "proxy.example"),
        ("Uses proxy env variable https_proxy == 'socks5h://[::1]:1080'\n", "[::1]:1080"),
        ("Uses proxy env variable no_proxy == 'example.org'\n", nil), ("  Trying 127.0.0.1:80...\n", nil),
    ]) func `which proxy is taken is heard of, and not its password`(_ text: String, _ place: String?) {
        #expect(HTTPProxy(said: text) == place.map { HTTPProxy(place: $0, variable: "https_proxy") })
    }

    // MARK: Addresses

    @Test func `an address is taken apart, or refused`() {
        #expect(HTTPAddress("https://Example.org/a%20b?c")?.description == "https://example.org/a%20b?c")
        #expect(HTTPAddress("http://[::1]:8080")?.description == "http://[::1]:8080/")
        #expect(HTTPAddress("http://127.0.0.1:80/")?.description == "http://127.0.0.1/")
        for text in [
            "", "example.org", "ftp://a/", "http://", "http:///x", "http://a:b@c/", "http://a:0/", "http://a:99999/",
            "http://a b/", "http://a/\u{e9}", "http://[::1/", "http://a\n/",
        ] {
            #expect(HTTPAddress(text) == nil, "\(text)")
        }
        for text in ["http://localhost/", "http://127.3.4.5/", "http://[::1]/"] {
            #expect(HTTPAddress(text)?.isLoopback == true)
        }
        for text in ["http://127.example.org/", "http://localhost.example.org/", "http://10.0.0.1/"] {
            #expect(HTTPAddress(text)?.isLoopback == false)
        }
    }
}
