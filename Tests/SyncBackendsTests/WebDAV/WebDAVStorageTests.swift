// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import HTTPClient
import Replication
import ServerTesting
import StoreEngine
import SyncEngine
import Synchronization
import Testing

@testable import BackendSupport
@testable import Blobs
@testable import WebDAV

/// How a storage interprets the answers of a server.
@Suite(.timeLimit(.minutes(30)))
struct WebDAVStorageTests {
    private func storage(_ port: UInt16, _ options: HTTPOptions = HTTPOptions()) throws -> WebDAVStorage {
        WebDAVStorage(try WebDAVURL("webdav://127.0.0.1:\(port)/dav"), options)
    }

    private func error(_ body: () async throws -> Void) async -> RemoteError? {
        do { try await body() } catch { return error as? RemoteError }
        return nil
    }

    private static let answers: [(ServerAnswer, RemoteError.Code)] = [
        (ServerAnswer(401), .unauthorized), (ServerAnswer(403), .denied), (ServerAnswer(423), .unavailable),
        (ServerAnswer(429, ["Retry-After": "77"]), .unavailable), (ServerAnswer(500), .unavailable),
        (ServerAnswer(503, ["Retry-After": "77"]), .unavailable), (ServerAnswer(507), .full),
        (ServerAnswer(302, ["Location": "https://login.example/?next=x"]), .unavailable),
        (ServerAnswer(303, ["Location": "/login"]), .unavailable), (ServerAnswer(407), .unavailable),
        (ServerAnswer(418), .unavailable), (.cut, .unavailable),
        (
            ServerAnswer(200, ["Content-Type": "text/html; charset=utf-8"], "\n<!DOCTYPE html><h1>Log in</h1>"),
            .unavailable
        ),
    ]

    @Test(arguments: answers.indices) func `every refusal has its kind, whatever was asked`(_ index: Int) async throws {
        let (answer, code) = Self.answers[index]
        let server = try ScriptedServer { _ in answer }
        let storage = try storage(server.port)
        let errors = [
            await error { _ = try await storage.list("h") },
            await error { _ = try await storage.get("h/00000000000000aa", limit: 100, unless: nil) },
            await error { try await storage.put("h/00000000000000aa", [1]) },
            await error { try await storage.create("a/00000000000000aa", [1]) },
            await error { try await storage.delete("h/00000000000000aa") },
        ]
        for error in errors { #expect(error?.code == code, "\(String(describing: error))") }
        let asks = String(decoding: answer.bytes, as: UTF8.self).contains("Retry-After")
        #expect(errors.allSatisfy { $0?.retryAfter == (asks ? 77 : nil) })
    }

    @Test func `what comes counts in the budget of all remotes, and is tried again when there is room`() async throws {
        let names = (0..<5000).map { String(repeating: "0", count: 12) + String(10_000 + $0) }
        let list = names.map { "<response><href>/dav/h/\($0)</href></response>" }.joined()
        let server = try ScriptedServer { request in
            request.method == "PROPFIND"
                ? ServerAnswer(207, [:], "<multistatus xmlns=\"DAV:\">\(list)</multistatus>")
                : ServerAnswer(200, [:], String(repeating: "x", count: 256 << 10))
        }
        let budget = RemoteBudget(limit: 6 << 20)
        let address = try WebDAVURL("webdav://127.0.0.1:\(server.port)/dav")
        let storage = WebDAVStorage(address, HTTPOptions(), budget: budget)
        var others = (0..<32).map { _ in budget.share() }
        for share in others { while share.take(16 << 10) {} }
        let segment = "s/00000000000000aa"
        for error in [
            await error { _ = try await storage.list("h") },
            await error { _ = try await storage.get(segment, limit: 1 << 20, unless: nil) },
        ] { #expect(error?.code == .unavailable && error?.message.contains("memory") == true) }
        others = []
        #expect(try await storage.list("h").count == names.count)
        guard case .content(let bytes, _) = try await storage.get(segment, limit: 1 << 20, unless: nil) else {
            Issue.record("it was not read")
            return
        }
        #expect(bytes.count == 256 << 10)
        // Nothing is held afterwards, so that a single share may have half of the budget.
        #expect(budget.share().take(3 << 20))
    }

    @Test func `a server that is no WebDAV server is named so`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(405) }
        let storage = try storage(server.port)
        #expect(await error { _ = try await storage.list("h") }?.code == .unsupported)
        let refused = await error { try await storage.put("h/00000000000000aa", [1]) }
        #expect(refused?.code == .unsupported && refused?.message.contains("at /dav, or") == true)
    }

    @Test(arguments: [
        ("https://127.0.0.1/dav/", "redirects to webdavs://127.0.0.1."),
        ("http://dav.example/", "redirects to webdav://dav.example."),
    ]) func `an address that a server sends to is written as one signs in with it`(place: String, words: String)
        async throws
    {
        let server = try ScriptedServer { _ in ServerAnswer(301, ["Location": place]) }
        let error = await error { _ = try await storage(server.port).list("h") }
        #expect(error?.code == .unavailable && error?.message.contains(words) == true, "\(String(describing: error))")
    }

    @Test(arguments: [(403, .denied), (507, .full), (423, .unavailable)] as [(Int, RemoteError.Code)])
    func `why a folder can't be made is said, and not that there is none`(status: Int, code: RemoteError.Code)
        async throws
    {
        for refused in ["/dav/a/", "/dav/"] {
            let server = try ScriptedServer { request in
                if request.method == "PUT" { return ServerAnswer(409) }
                return ServerAnswer(request.path == refused ? status : 409)
            }
            let storage = try storage(server.port)
            _ = try await storage.check(creatingFolder: true)
            let error = await error { try await storage.create("a/00000000000000aa", [1]) }
            #expect(error?.code == code && error?.message.contains("There is no folder") == false)
        }
    }

    @Test func `a folder that another device makes at the same moment is used, though making it was refused`()
        async throws
    {
        let made = Mutex<Set<String>>([])
        let server = try ScriptedServer { request in
            made.withLock { made in
                if request.method == "PUT" { return ServerAnswer(made.contains("/dav/a/") ? 201 : 409) }
                guard request.path == "/dav/" || made.contains("/dav/") else { return ServerAnswer(409) }
                // As Apache does if the directory has appeared since it looked.
                made.insert(request.path)
                return ServerAnswer(403)
            }
        }
        let storage = try storage(server.port)
        _ = try? await storage.check(creatingFolder: true)
        #expect(await error { try await storage.create("a/00000000000000aa", [1]) } == nil)
    }

    @Test func `a head whose ETag is not weak any more is the one it was`() async throws {
        let tags = Mutex(["W/\"1\"", "\"1\"", "\"2\""])
        let server = try ScriptedServer { _ in
            let tag = tags.withLock { $0.removeFirst() }
            return ServerAnswer(
                207, [:],
                """
                <D:multistatus xmlns:D="DAV:"><D:response><D:href>/dav/h/00000000000000aa</D:href><D:propstat><D:prop>
                <D:getetag>\(tag)</D:getetag></D:prop><D:status>HTTP/1.1 200 OK</D:status></D:propstat></D:response>
                </D:multistatus>
                """)
        }
        let storage = try storage(server.port)
        let (fresh, older, other) = try await (storage.list("h"), storage.list("h"), storage.list("h"))
        #expect(fresh.count == 1 && fresh == older && fresh != other)
    }

    @Test func `what is absent is absent, and a remote that is gone is not taken for an empty one`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(404) }
        let storage = try storage(server.port)
        #expect(try await storage.get("h/00000000000000aa", limit: 100, unless: nil) == .absent)
        try await storage.delete("h/00000000000000aa")
        #expect(try await storage.list("h").isEmpty)
        #expect(await error { _ = try await storage.list("a") }?.code == .unavailable)
        let backend = BlobBackend(storage: storage, environment: .system)
        #expect(await error { _ = try await backend.pull(after: nil, as: Origin(bits: 1)) }?.code == .unavailable)
    }

    @Test func `a blob that only begins like a page, and one that a server takes for a page, are blobs`() async throws {
        for (type, text) in [("application/octet-stream", "<x>"), ("text/html", "UKVh")] {
            let server = try ScriptedServer { _ in ServerAnswer(200, ["Content-Type": type], text) }
            let content = try await storage(server.port).get(
                "s/\(String(repeating: "a", count: 32))", limit: 100, unless: nil)
            #expect(content == .content(Array(text.utf8), version: nil))
        }
    }

    @Test func `a listing that is no listing, is cut off or never ends is an error and no empty folder`() async throws {
        let start = "<multistatus xmlns='DAV:'><response><href>/dav/h/00000000000000aa</href></response>"
        for text in ["", start, "hello", start + "<!DOCTYPE x>", start + String(repeating: "x", count: 1 << 20)] {
            let server = try ScriptedServer { _ in ServerAnswer(207, [:], text) }
            #expect(await error { _ = try await storage(server.port).list("h") }?.code == .unavailable)
        }
    }

    @Test func `a marker whose answer was lost is not in the way of itself, and another one is`() async throws {
        let server = try ScriptedServer { $0.method == "PUT" ? ServerAnswer(412) : ServerAnswer(200, [:], "mine") }
        let storage = try storage(server.port)
        try await storage.create("a/00000000000000aa", Array("mine".utf8))
        #expect(await error { try await storage.create("a/00000000000000aa", [1]) }?.code == .denied)
    }

    @Test(arguments: [("3", true), ("30", false), (nil, true), ("many", true)])
    func `a head has the listing's version, unless it is not as long as the listing says`(
        length: String?, isVersioned: Bool
    ) async throws {
        let size = length.map { "<getcontentlength>\($0)</getcontentlength>" } ?? ""
        let server = try ScriptedServer { request in
            request.method == "PROPFIND"
                ? ServerAnswer(
                    207, [:],
                    "<multistatus xmlns=\"DAV:\"><response><href>/dav/h/00000000000000aa</href><propstat><prop>"
                        + "<getetag>\"1\"</getetag>\(size)</prop><status>HTTP/1.1 200 OK</status></propstat></response>"
                        + "</multistatus>")
                : ServerAnswer(200, [:], "abc")
        }
        let storage = try storage(server.port)
        let listing = try #require(try await storage.list("h").first)
        let content = try await storage.get("h/00000000000000aa", limit: 100, unless: nil)
        #expect(listing.version != nil)
        #expect(content == .content(Array("abc".utf8), version: isVersioned ? listing.version : nil))
    }

    @Test func `nothing says what is secret`() async throws {
        let server = try ScriptedServer { _ in ServerAnswer(401, ["WWW-Authenticate": "Basic realm=\"x\""]) }
        let credentials = ServerCredentials(user: "ada", password: "s3cret")
        let options = try credentials.options
        let error = await error { _ = try await storage(server.port, options).list("h") }
        #expect(error?.code == .unauthorized)
        let checks = await WebDAVBackend.check(url: "webdav://127.0.0.1:\(server.port)/x", credentials: credentials)
        #expect(!"\(String(describing: error)) \(checks) \(options)".contains("s3cret"))
        #expect(server.requests.contains { $0.headers["authorization"] != nil })
    }

    @Test func `credentials that are none are refused before anybody is asked`() throws {
        let wrong = [
            ServerCredentials(user: "ada"), .init(password: "x"), .init(user: "a:b", password: "x"),
            .init(user: "ada", password: "x", token: "y"),
        ]
        for credentials in wrong { #expect(throws: RemoteError.self) { try credentials.options } }
    }

    /// nginx with `create_full_put_path` makes every folder of a mistyped path.
    @Test(arguments: [404, 207]) func `a folder is made, and none above it`(above: Int) async throws {
        let server = try ScriptedServer { request in
            request.method == "PUT"
                ? ServerAnswer(201) : ServerAnswer(request.path == "/" && request.method == "PROPFIND" ? above : 404)
        }
        let backend = BlobBackend(storage: try storage(server.port), environment: .system)
        let failure = await error { _ = try await backend.open(creatingAccount: true) }
        #expect(server.requests.contains { $0.method == "PUT" } == (above == 207))
        if above == 404 {
            #expect(failure?.code == .unavailable && failure?.message.hasPrefix("The path is wrong") == true)
        }
    }

    /// So wsgidav does if its disk is full.
    @Test(arguments: ["", "abc"]) func `what a full server keeps of a file is removed, or else replaced`(
        kept: String
    ) async throws {
        let file = Mutex<String?>(nil)
        let isFull = Mutex(true)
        let server = try ScriptedServer { request in
            file.withLock { content in
                switch request.method {
                case "PUT" where request.headers["if-none-match"] != nil && content != nil: return ServerAnswer(412)
                case "PUT":
                    let isFull = isFull.withLock(\.self)
                    content = isFull ? kept : String(decoding: request.body, as: UTF8.self)
                    return ServerAnswer(isFull ? 500 : 201)
                case "GET": return content.map { ServerAnswer(200, [:], $0) } ?? ServerAnswer(404)
                case "DELETE":
                    content = nil
                    return ServerAnswer(204)
                default: return ServerAnswer(207)
                }
            }
        }
        let storage = try storage(server.port)
        #expect(await error { try await storage.create("a/x", Array("abcd".utf8)) } != nil)
        #expect(file.withLock(\.self) == nil)
        // It stays if the device dies before.
        file.withLock { $0 = kept }
        isFull.withLock { $0 = false }
        try await storage.create("a/x", Array("abcd".utf8))
        #expect(file.withLock(\.self) == "abcd")
        #expect(await error { try await storage.create("a/x", Array("ab".utf8)) }?.code == .denied)
    }

    @Test(arguments: [.cut, ServerAnswer(400)])
    func `who may have forgotten the TLS is told of it`(answer: ServerAnswer) async throws {
        let server = try ScriptedServer { _ in answer }
        let plain = try storage(server.port)
        #expect(await error { _ = try await plain.list("h") }?.message.hasSuffix("begin with webdavs://.") == true)
        let strange = RemoteError(webDAV: .secureConnection("server", reason: "wrong version number"), isSecure: true)
        #expect(strange.message.hasSuffix("begin with webdav://."))
    }

    // MARK: Checks

    @Test func `a check says what was tried, how the clocks differ, and where it ends`() async throws {
        let server = try ScriptedServer { request in
            ServerAnswer(request.path == "/" ? 207 : 404, ["Date": "Sun, 06 Nov 1994 08:49:37 GMT"])
        }
        let checks = await WebDAVBackend.check(
            url: "webdav://127.0.0.1:\(server.port)/dav", credentials: .init(),
            environment: Environment(time: { 784_111_777_000_000 + 90_000_000 }, random: { 1 }))
        #expect(checks.map(\.step) == ["address", "connect", "clock", "sign in", "folder"])
        #expect(checks.allSatisfy { $0.isPassed })
        #expect(checks[2].detail.hasPrefix("The server's clock is 90 s behind this device's."))
        #expect(checks[4].detail == "/dav doesn't exist yet; signing in creates it.")
    }

    @Test func `a check says that a server can't make the folder that is missing`() async throws {
        let server = try ScriptedServer { ServerAnswer(["GET", "HEAD"].contains($0.method) ? 404 : 501) }
        let checks = await WebDAVBackend.check(url: "webdav://127.0.0.1:\(server.port)/dav", credentials: .init())
        #expect(checks.last?.step == "folder" && checks.last?.isPassed == false)
        #expect(checks.last?.detail.hasPrefix("127.0.0.1 is not a WebDAV server at /") == true)
    }

    @Test(arguments: [
        (-1799, "29 min behind"), (7300, "2 hours ahead of"), (-31_536_000, "365 days behind"),
    ])
    func `how far the clocks are apart is said in a unit that people know`(offset: Int, words: String) {
        let environment = Environment(time: { 784_111_777_000_000 }, random: { 1 })
        let check = BackendCheck.clock(784_111_777 + offset, environment)
        #expect(check.detail.hasPrefix("The server's clock is \(words) this device's. If this device's clock is"))
    }

    @Test(arguments: ["/remote.php/dav/files/adda/Settings", "/dav", "/"])
    func `a check of a path of which nothing is there says that it is wrong`(path: String) async throws {
        let server = try ScriptedServer { _ in ServerAnswer(404) }
        let checks = await WebDAVBackend.check(url: "webdav://127.0.0.1:\(server.port)\(path)", credentials: .init())
        #expect(checks.last?.step == "folder" && checks.last?.isPassed == false)
        #expect(checks.last?.detail.contains(path == "/" ? "There is no folder" : "The path is wrong") == true)
    }

    @Test(arguments: [
        (507, "There is no space left on 127.0.0.1."), (403, "127.0.0.1 denies access to /dav/check-1"),
        (423, "/dav/check-1 is locked on 127.0.0.1 just now."),
    ]) func `a check says why nothing can be written`(status: Int, words: String) async throws {
        let files = Files()
        let server = try ScriptedServer { $0.method == "PUT" ? ServerAnswer(status) : files.answer($0) }
        let checks = await check(server)
        #expect(checks.last?.step == "write" && checks.last?.isPassed == false)
        let detail = (checks.last?.detail ?? "").replacing("check-0000000000000001", with: "check-1")
        #expect(detail.hasPrefix(words), "\(detail)")
    }

    @Test func `a check says which conditions a server does not honour, and passes`() async throws {
        for (honoured, words) in [
            (
                [],
                "The server ignores If-None-Match, If-Match. That does no harm: the service doesn't rely on it."
            ),
            (["if-none-match"], "The server ignores If-Match. That does no harm: the service doesn't rely on it."),
            (["if-none-match", "if-match"], ""),
        ] {
            let files = Files()
            let server = try ScriptedServer { request in
                honoured.contains { request.headers[$0] != nil } ? ServerAnswer(412) : files.answer(request)
            }
            let checks = await check(server)
            #expect(checks.last == BackendCheck(step: "conditions", isPassed: true, detail: words))
            #expect(files.isEmpty)
        }
    }

    private func check(_ server: ScriptedServer) async -> [BackendCheck] {
        await WebDAVBackend.check(
            url: "webdav://127.0.0.1:\(server.port)/dav", credentials: .init(),
            environment: Environment(time: { 1 }, random: { 1 }))
    }

    @Test func `a check of a server that answers a few bytes a second ends in time, and with it what it has asked`()
        async throws
    {
        let server = try ScriptedServer { _ in .dripping(207) }
        let checks = await WebDAVBackend.check(
            url: "webdav://127.0.0.1:\(server.port)/dav", credentials: .init(), within: .seconds(1))
        #expect(checks.map(\.step) == ["address", "connect"])
        #expect(checks.last?.isPassed == false && checks.last?.detail == "127.0.0.1 did not answer in time.")
        while server.openConnections > 0 { try await Task.sleep(for: .milliseconds(10)) }
    }

    @Test func `a check ends with the step that fails`() async throws {
        for (answer, steps) in [
            (ServerAnswer.cut, ["address", "connect"]),
            (ServerAnswer(401), ["address", "connect", "clock", "sign in"]),
            (ServerAnswer(403), ["address", "connect", "clock", "sign in"]),
            (ServerAnswer(405), ["address", "connect", "clock", "sign in", "folder"]),
            (
                ServerAnswer(200, ["Content-Type": "text/html"], "<p>"),
                ["address", "connect", "clock", "sign in", "folder"]
            ),
        ] {
            let server = try ScriptedServer { _ in answer }
            let checks = await WebDAVBackend.check(url: "webdav://127.0.0.1:\(server.port)/dav", credentials: .init())
            #expect(checks.map(\.step) == steps)
            #expect(checks.last?.isPassed == false && checks.last?.detail.isEmpty == false)
            #expect(checks.dropLast().allSatisfy { $0.isPassed })
        }
    }
}

/// As much of a server as a check needs, without conditional requests.
private final class Files: Sendable {
    private let files = Mutex<[String: [UInt8]]>([:])

    var isEmpty: Bool { files.withLock(\.isEmpty) }

    func answer(_ request: ServerRequest) -> ServerAnswer {
        files.withLock { files in
            switch request.method {
            case "PUT":
                files[request.path] = request.body
                return ServerAnswer(201)
            case "GET":
                return files[request.path].map { ServerAnswer(200, [:], String(decoding: $0, as: UTF8.self)) }
                    ?? ServerAnswer(404)
            case "DELETE": return ServerAnswer(files.removeValue(forKey: request.path) == nil ? 404 : 204)
            default:
                let members = files.keys.map { "<response><href>\($0)</href></response>" }.joined()
                return ServerAnswer(207, [:], "<multistatus xmlns='DAV:'>\(members)</multistatus>")
            }
        }
    }
}
