// SPDX-License-Identifier: Apache-2.0

import HTTPClient
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

@testable import PanelModel

struct BrowserLoginTests {
    private let server = HTTPAddress("https://cloud.example.org/")

    private func answer(poll: String, page: String) -> [UInt8] {
        Array(#"{"poll":{"token":"t&1","endpoint":"\#(poll)"},"login":"\#(page)"}"#.utf8)
    }

    @Test func `a login of the typed server needs no question`() throws {
        let server = try #require(server)
        let login = try BrowserLogin(
            answer(poll: "https://cloud.example.org/poll", page: "https://cloud.example.org/flow"), from: server)
        #expect(login.otherHosts.isEmpty)
        #expect(login.page == "https://cloud.example.org/flow")
    }

    @Test func `a login by way of another host is asked about`() throws {
        let server = try #require(server)
        let login = try BrowserLogin(
            answer(poll: "https://evil.example/poll", page: "https://cloud.example.org/flow"), from: server)
        #expect(login.otherHosts == ["evil.example"])
    }

    @Test(arguments: ["http://cloud.example.org/x", "ftp://cloud.example.org/x", "javascript:alert(1)", ""])
    func `a page or endpoint that isn't encrypted is refused`(address: String) throws {
        let (server, good) = (try #require(server), "https://cloud.example.org/x")
        #expect(throws: BrowserLogin.Flaw.self) {
            try BrowserLogin(answer(poll: address, page: good), from: server)
        }
        #expect(throws: BrowserLogin.Flaw.self) {
            try BrowserLogin(answer(poll: good, page: address), from: server)
        }
    }

    @Test(arguments: ["", "{}", "<html>", #"{"poll":1,"login":2}"#])
    func `what isn't Nextcloud's answer is refused`(text: String) throws {
        let server = try #require(server)
        #expect(throws: BrowserLogin.Flaw.noNextcloud) { try BrowserLogin(Array(text.utf8), from: server) }
    }

    @Test func `credentials for another server are refused`() throws {
        let text = #"{"server":"https://evil.example","loginName":"ada","appPassword":"p"}"#
        #expect(throws: BrowserLogin.Flaw.otherServer("evil.example")) {
            try BrowserLogin.Credentials(Array(text.utf8), hosts: ["cloud.example.org"])
        }
    }

    @Test func `a user who agrees in the browser need not type a password`() async throws {
        let polls = Mutex(0)
        let nextcloud = try ScriptedServer { request in
            let origin = "http://" + (request.headers["host"] ?? "")
            switch request.path {
            case "/nc/index.php/login/v2":
                return ServerAnswer(
                    200, [:],
                    #"{"poll":{"token":"t&1","endpoint":"\#(origin)/poll"},"login":"\#(origin)/flow"}"#)
            case "/poll":
                let count = polls.withLock {
                    $0 += 1
                    return $0
                }
                if count == 1 || request.body != Array("token=t%261".utf8) { return ServerAnswer(404, [:], "[]") }
                return ServerAnswer(200, [:], #"{"server":"\#(origin)/nc","loginName":"ada","appPassword":"app"}"#)
            default: return ServerAnswer(500)
            }
        }
        var form = SignInForm(.nextcloud)
        form.values[.server] = nextcloud.url + "/nc/index.php/apps/files"
        let client = try BrowserLoginClient(form)
        defer { client.close() }
        let login = try await client.begin()
        #expect(login.page == nextcloud.url + "/flow")
        let credentials = try await client.credentials(of: login)
        #expect(credentials?.user == "ada")
        #expect(credentials?.password == "app")
        #expect(credentials?.server == nextcloud.url + "/nc")
    }

    @Test(.timeLimit(.minutes(30))) func `a server that doesn't answer can be given up`() async throws {
        let server = try SilentServer()
        var form = SignInForm(.nextcloud)
        form.values[.server] = "http://127.0.0.1:\(server.port)"
        let client = try BrowserLoginClient(form)
        let login = Task { try await client.begin() }
        try await eventually("the server is asked") { server.isAsked }
        let start = ContinuousClock.now
        login.cancel()
        await #expect(throws: BrowserLogin.Flaw.self) { try await login.value }
        // Without that, the request would end after half a minute.
        #expect(start.duration(to: .now) < .seconds(20))
    }

    @Test func `a server that is no Nextcloud is said to be none`() async throws {
        let other = try ScriptedServer { _ in ServerAnswer(404) }
        var form = SignInForm(.nextcloud)
        form.values[.server] = other.url
        let client = try BrowserLoginClient(form)
        defer { client.close() }
        await #expect(throws: BrowserLogin.Flaw.noNextcloud) { try await client.begin() }
    }
}
