// SPDX-License-Identifier: Apache-2.0

import Foundation
import Glibc
import PropertyList
import SDBus
import ServerTesting
import Synchronization
import Testing
import UbiquitousStoreTesting

/// Two services and a WebDAV server between them, with a password.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct WebDAVTests {
    private nonisolated static let kind = [WebDAVServer.Kind.lighttpd, .apache, .nginx, .rclone].first {
        $0.program != nil
    }
    private nonisolated static let secureKind = [WebDAVServer.Kind.rclone, .apache, .nginx].first { $0.program != nil }
    private nonisolated static let isMissing: Comment =
        "no WebDAV server is installed; script/bootstrap --all installs them"

    private static let credentials: KeyValuePairs<String, Value> = [
        "user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password)),
    ]

    /// Runs a test with two devices signed in to a folder of a server.
    private func withServer(_ body: @BusActor (TwoDevices, WebDAVServer) async throws -> Void) async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        try await withTwoDevices { devices in
            for device in [devices.laptop, devices.phone] {
                device.keepSecret(WebDAVServer.password)
                try await devices.account(device).join(server.url + "/sync", Self.credentials)
            }
            try await body(devices, server)
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `what one device writes the other one has, whatever the server does in between`() async throws {
        try await withServer { devices, server in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await phone.subscribe()
            try await laptop.set("first", .integer(1))
            #expect(try await devices.converge() == ["first": .integer(1)])
            #expect(try await phone.signal("the change") { _ in true }.keys == ["first"])
            #expect(phone.received.count == 1)

            server.stop()
            #expect(await errorName { try await laptop.client.account.syncNow() } == "BackendUnavailable")
            #expect(try await laptop.client.account.state() == "offline")
            try await laptop.apply(["laptop": .integer(1), "both": "laptop"])
            try await phone.apply(["phone": .integer(1)], removing: ["first"])
            try server.start()
            let expected: [Text: Value] = ["laptop": .integer(1), "phone": .integer(1), "both": "laptop"]
            #expect(try await devices.converge() == expected)

            try await devices.laptop.restart()
            try await devices.store(devices.laptop).set("restarted", .integer(1))
            #expect(try await devices.converge().count == 4)
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a server that was restored from a backup loses nothing and brings nothing back`() async throws {
        try await withServer { devices, server in
            let (laptop, phone) = (try devices.store(devices.laptop), try devices.store(devices.phone))
            try await laptop.apply(["kept": .integer(1), "deleted": .integer(1), "changed": .integer(1)])
            _ = try await devices.converge()
            let backup = devices.directory.path + "/backup"
            try FileManager.default.copyItem(atPath: server.root, toPath: backup)
            try await phone.apply(["changed": .integer(2), "later": .integer(1)], removing: ["deleted"])
            let expected: [Text: Value] = ["kept": .integer(1), "changed": .integer(2), "later": .integer(1)]
            #expect(try await devices.converge() == expected)
            server.stop()
            try server.restore(from: backup)
            try server.start()
            try await laptop.set("after", .integer(1))
            #expect(try await devices.converge() == expected.merging(["after": .integer(1)]) { $1 })
        }
    }

    @Test(.enabled(if: kind != nil, isMissing), arguments: [false, true])
    func `a folder that somebody deleted on the server is filled from a device, which makes it if nobody has`(
        isMadeByHand: Bool
    ) async throws {
        try await withServer { devices, server in
            let laptop = try devices.store(devices.laptop)
            try await laptop.set("kept", .integer(1))
            _ = try await devices.converge()
            try FileManager.default.removeItem(atPath: server.root + "/sync")
            let account = laptop.client.account
            #expect(await errorName { try await account.syncNow() } == "BackendUnavailable")
            #expect(try await account.state() == "offline")
            #expect(try await account.property("LastErrorReason") == .string("folder-missing"))
            try await laptop.set("meanwhile", .integer(1))
            if isMadeByHand {
                try server.makeFolder("sync")
                #expect(await errorName { try await account.syncNow() } == "RemoteReset")
            }
            try await account.resolve("local")
            #expect(try await devices.converge() == ["kept": .integer(1), "meanwhile": .integer(1)])
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `an account whose server shows a page instead is offline, and goes on by itself`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let proxy = try FaultProxy(before: server.port)
        let page = ServerAnswer(200, ["Content-Type": "text/html"], "<!DOCTYPE html><h1>We are back soon</h1>")
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            try await account.join("webdav://127.0.0.1:\(proxy.port)/dav/sync", Self.credentials)
            try await devices.store(devices.laptop).set("kept", .integer(1))
            try await account.syncNow()
            proxy.onRequest { .answer($0.method == "GET" ? page : ServerAnswer(405)) }
            #expect(await errorName { try await account.syncNow() } == "BackendUnavailable")
            #expect(try await account.state() == "offline")
            try await devices.laptop.restart()
            let restarted = try devices.account(devices.laptop)
            #expect(await errorName { try await restarted.syncNow() } == "BackendUnavailable")
            #expect(try await restarted.state() == "offline")
            proxy.onRequest(nil)
            try await eventually("it goes on") { try await restarted.state() == "idle" }
            #expect(try await devices.store(devices.laptop).value("kept") == .integer(1))
        }
        proxy.end()
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `an account whose server lists nothing any more is neither gone nor one to create`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        try await withTwoDevices { devices in
            let url = "webdav://127.0.0.1:\(proxy.port)/dav/sync"
            try await devices.account(devices.laptop).join(url, Self.credentials)
            try await devices.store(devices.laptop).set("kept", .integer(1))
            try await devices.account(devices.laptop).syncNow()
            proxy.onRequest { request in
                if request.method == "PROPFIND" { return .answer(ServerAnswer(405)) }
                return request.method == "GET" && request.path.hasSuffix("/") ? .answer(ServerAnswer(403)) : nil
            }
            try await devices.laptop.restart()
            let account = try devices.account(devices.laptop)
            #expect(await errorName { try await account.syncNow() } == "BackendUnavailable")
            #expect(try await account.state() == "offline")
            #expect(try await account.property("LastErrorReason") == .string("lists-nothing"))
            #expect(await errorName { try await account.signIn(url, Self.credentials) } == "BackendUnavailable")
            proxy.onRequest(nil)
            try await account.syncNow()
            #expect(try await account.state() == "idle")
            #expect(try await devices.store(devices.laptop).value("kept") == .integer(1))
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a wrong password is refused, one that was changed is told, and a new one goes on`() async throws {
        try await withServer { devices, server in
            let account = try devices.account(devices.laptop)
            devices.laptop.keepSecret("an0ther")
            let wrong: KeyValuePairs<String, Value> = ["user": "ada", "password": "an0ther"]
            #expect(
                await errorName { try await account.signIn(server.url + "/sync", wrong) }
                    == "BackendAuthenticationFailed")
            #expect(try await account.state() == "idle")
            try server.change(password: "an0ther")
            #expect(await errorName { try await account.syncNow() } == "BackendAuthenticationFailed")
            let properties = try await account.client.properties(account.path, AccountClient.interface)
            #expect(properties["State"] == "auth-failed")
            #expect(
                properties["LastErrorName"] == "org.example.UbiquitousStore.Error.BackendAuthenticationFailed")
            #expect(properties["LastErrorMessage"] != "" && properties["NextAttemptUSec"] != .integer(0))
            #expect(properties["Backend"] == .string(Text(server.url + "/sync")))
            #expect(properties["AccountIdentifier"] != "" && properties["InitialSyncDone"] == .boolean(true))
            #expect(try await account.signIn(server.url + "/sync", wrong) == account.text("AccountIdentifier"))
            try await account.syncNow()
            #expect(try await account.text("Backend") == server.url + "/sync")
            #expect(try await account.state() == "idle")
            #expect(try await account.lastError() == "")
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a password that was changed is tried once, whatever apps do, until somebody says another`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let proxy = try FaultProxy(before: server.port)
        defer { proxy.end() }
        let attempts = Mutex(0)
        proxy.onRequest { request in
            if request.headers["authorization"] != nil { attempts.withLock { $0 += 1 } }
            return nil
        }
        try await withTwoDevices { devices in
            let (url, account) = ("webdav://127.0.0.1:\(proxy.port)/dav/sync", try devices.account(devices.laptop))
            let store = try devices.store(devices.laptop)
            try await account.join(url, Self.credentials)
            try await account.syncNow()
            devices.laptop.keepSecret("an0ther")
            try server.change(password: "an0ther")
            attempts.withLock { $0 = 0 }
            #expect(await errorName { try await account.syncNow() } == "BackendAuthenticationFailed")
            try await store.subscribe()
            try await store.set("key", .integer(1))
            #expect(try await store.synchronize() == false)
            #expect(await errorName { try await store.synchronize(0x1) } == "BackendAuthenticationFailed")
            let properties = try await account.client.properties(account.path, AccountClient.interface)
            var next = 0.0
            if case .integer(let time) = properties["NextAttemptUSec"] { next = Double(time) / 1e6 }
            #expect(next > Date().timeIntervalSince1970 + 3000)
            #expect(attempts.withLock(\.self) == 1)

            let other: KeyValuePairs<String, Value> = ["user": .string(Text(WebDAVServer.user)), "password": "an0ther"]
            _ = try await account.signIn(url, other)
            try await eventually("it goes on") { try await account.state() == "idle" }
            try await account.syncNow()
        }
    }

    @Test(.enabled(if: secureKind != nil, isMissing))
    func `a server with a private authority is one to sign in to with its certificate, and only so`() async throws {
        let server = try WebDAVServer(#require(Self.secureKind), access: .basic, isSecure: true)
        let authority = try #require(server.authority)
        try await withTwoDevices { devices in
            let (url, account) = (server.url + "/sync", try devices.account(devices.laptop))
            #expect(await errorName { try await account.signIn(url, Self.credentials) } == "BackendUnavailable")
            let credentials: KeyValuePairs<String, Value> = [
                "user": .string(Text(WebDAVServer.user)), "password": .string(Text(WebDAVServer.password)),
                "ca-pem": .data(authority),
            ]
            try await account.join(url, credentials)
            // The certificate is stored, as the password is.
            try await devices.laptop.restart()
            try await devices.store(devices.laptop).set("key", .integer(1))
            try await account.syncNow()
            try await devices.account(devices.phone).join(url, credentials)
            #expect(try await devices.converge() == ["key": .integer(1)])
            #expect(!devices.laptop.log.contains("not encrypted"))
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `signing in without encryption is warned of in the log, unless it stays on the machine`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            try await account.join(server.url + "/sync", Self.credentials)
            #expect(!devices.laptop.log.contains("not encrypted"))
            // This address is the machine's own, too, but not recognizably.
            let url = "webdav://0.0.0.0:\(server.port)/dav/sync"
            try await account.join(url, Self.credentials)
            try await account.syncNow()
            #expect(devices.laptop.log.components(separatedBy: "warning").count == 2)
            #expect(devices.laptop.log.contains("\(url): The connection is not encrypted"))
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `whatever a network does to requests, nothing is lost and nothing comes back`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let proxy = try FaultProxy(before: server.port)
        let url = "webdav://127.0.0.1:\(proxy.port)/dav/sync"
        try await withTwoDevices { devices in
            for device in [devices.laptop, devices.phone] {
                try await devices.account(device).join(url, Self.credentials)
            }
            let stores = [try devices.store(devices.laptop), try devices.store(devices.phone)]
            proxy.onRequest(Self.everyFault)
            var expected: [Text: Value] = [:]
            for round in 0..<40 {
                let store = stores[round % 2]
                let key = Text("\(round % 2) \(round % 12)")
                if round % 5 == 4 {
                    try await store.apply([:], removing: [key.string])
                    expected[key] = nil
                } else {
                    try await store.set(key.string, .integer(Int64(round)))
                    expected[key] = .integer(Int64(round))
                }
                _ = await failure { try await store.client.account.syncNow() }
            }
            proxy.onRequest(nil)
            // A 401 may have been the last answer. What is refused is not tried again for a minute.
            for store in stores { _ = try await store.client.account.signIn(url, Self.credentials) }
            #expect(try await devices.converge() == expected)
        }
        proxy.end()
    }

    /// Makes every third request fail, with each kind of fault in turn.
    private static var everyFault: @Sendable (ServerRequest) -> FaultProxy.Fault? {
        let page = ServerAnswer(200, ["Content-Type": "text/html"], "<!DOCTYPE html><form>Log in</form>")
        let faults: [FaultProxy.Fault] = [
            .cut, .answerLost, .answerCut(60), .answerCut(300), .twice, .late(50), .requestCut(10),
            .answer(ServerAnswer(500)), .answer(ServerAnswer(503, ["Retry-After": "0"])), .answer(ServerAnswer(429)),
            .answer(ServerAnswer(423)), .answer(ServerAnswer(401)), .answer(page), .answer(ServerAnswer(507)),
        ]
        let count = Counter()
        return { _ in
            let number = count.next()
            return number % 3 == 0 ? faults[number / 3 % faults.count] : nil
        }
    }

    @Test func `a server that takes connections and never answers delays nobody who asks for something local`()
        async throws
    {
        let server = try ScriptedServer { _ in .nothing }
        try await withTwoDevices { devices in
            let laptop = try devices.store(devices.laptop)
            let account = laptop.client.account
            let other = try devices.account(devices.laptop)
            let signIn = Task { await errorName { try await other.signIn("webdav://127.0.0.1:\(server.port)/x") } }
            try await eventually("the server is asked") { !server.requests.isEmpty }
            for number in 0..<100 { try await laptop.set("\(number)", .integer(1)) }
            #expect(try await laptop.everything().count == 100)
            #expect(try await account.state() == "signed-out")
            #expect(server.openConnections == 1, "it still waits")
            server.end()
            #expect(await signIn.value == "BackendUnavailable")
        }
    }

    @Test func `signing out ends no check of another remote`() async throws {
        let server = try ScriptedServer { _ in .nothing }
        try await withTwoDevices { devices in
            let account = try devices.account(devices.laptop)
            try await account.join(devices.url)
            let other = try devices.account(devices.laptop)
            let check = Task { try await other.check("webdav://127.0.0.1:\(server.port)/x").map { $0["step"] } }
            try await eventually("the server is asked") { !server.requests.isEmpty }
            try await account.signOut()
            server.end()
            #expect(try await check.value == ["address", "connect"])
        }
    }

    /// The service must not wait for a lookup that it has given up. This one lasts until the end of the test.
    @Test func `a name that is looked up for ever delays nobody, and is given up`() async throws {
        let directory = try TemporaryDirectory()
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        options.environment = [
            "SLOW_NAMES": directory.path + "/lookup",
            "LD_PRELOAD": URL(filePath: try Device.program()).deletingLastPathComponent()
                .appending(path: "libSlowNames.so").path,
        ]
        let device = try await Device.start(on: .start(), options)
        let store = try BusClient(device.bus).store(notes)
        let other = try BusClient(device.bus).account
        let signIn = Task { await errorName { try await other.signIn("webdavs://server.example/x") } }
        try await eventually("the name is looked up") {
            FileManager.default.fileExists(atPath: directory.path + "/lookup")
        }
        try await store.set("local", .integer(1))
        #expect(await signIn.value == "BackendUnavailable")
        #expect(try await store.value("local") == .integer(1))
        #expect(FileManager.default.fileExists(atPath: directory.path + "/lookup"))
        check(device)
        device.kill()
        device.bus.end()
    }

    @Test func `a user's names that are looked up for ever take two threads, however many they are`() async throws {
        let directory = try TemporaryDirectory()
        var options = Device.Options()
        options.environment = [
            "SLOW_NAMES": directory.path + "/lookup",
            "LD_PRELOAD": URL(filePath: try Device.program()).deletingLastPathComponent()
                .appending(path: "libSlowNames.so").path,
        ]
        let device = try await Device.start(on: .start(), options)
        let account = try BusClient(device.bus).account
        func lookups() -> Int {
            FileManager.default.contents(atPath: directory.path + "/lookup")?.count ?? 0
        }
        for number in 1...6 {
            let check = Task { try? await account.check("webdavs://name\(number).example/x") }
            if number <= 2 {
                try await eventually("the name is looked up") { lookups() == number }
            } else {
                // It waits for its turn until it is given up.
                try await Task.sleep(for: .milliseconds(100))
            }
            try await account.signOut(["only-attempt": .boolean(true)])
            _ = await check.value
        }
        #expect(lookups() == 2)
        // Once a lookup ends, another one begins. This one fails, as the former do then.
        unlink(directory.path + "/lookup")
        let name = await errorName { try await account.signIn("webdavs://other.example/x") }
        #expect(name == "BackendUnavailable")
        check(device)
        device.kill()
        device.bus.end()
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `an account whose server comes to hang can be written to and signed out of`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let proxy = try FaultProxy(before: server.port)
        try await withTwoDevices { devices in
            let laptop = try devices.store(devices.laptop)
            let (account, other) = (laptop.client.account, try devices.account(devices.laptop))
            try await account.join("webdav://127.0.0.1:\(proxy.port)/dav/sync", Self.credentials)
            proxy.onRequest { _ in .answer(.nothing) }
            let answers = Counter()
            let sync = Task {
                let name = await errorName { try await other.syncNow() }
                _ = answers.next()
                return name
            }
            try await eventually("a sync cycle is under way") { proxy.isWaiting }
            try await laptop.set("local", .integer(1))
            #expect(try await laptop.value("local") == .integer(1))
            #expect(answers.next() == 1, "the cycle still hangs")
            try await account.signOut()
            #expect(await sync.value == "BackendUnavailable")
            #expect(try await account.state() == "signed-out")
        }
        proxy.end()
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `libcurl is loaded for an account on a server, and for no other one`() async throws {
        try await withTwoDevices { devices in
            let server = try WebDAVServer(#require(Self.kind), access: .basic)
            func isLoaded(_ device: Device) throws -> Bool {
                let file = try #require(FileHandle(forReadingAtPath: "/proc/\(device.pid)/maps"))
                return String(decoding: try file.readToEnd() ?? Data(), as: UTF8.self).contains("libcurl")
            }
            try await devices.account(devices.laptop).join(devices.url)
            try await devices.account(devices.laptop).syncNow()
            try await devices.account(devices.phone).join(server.url + "/sync", Self.credentials)
            #expect(try !isLoaded(devices.laptop))
            #expect(try isLoaded(devices.phone))
        }
    }

    @Test(.enabled(if: kind != nil, isMissing))
    func `a server is reached through the proxy of the environment`() async throws {
        let server = try WebDAVServer(#require(Self.kind), access: .basic)
        let proxy = try FaultProxy(before: server.port)
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        options.environment = ["http_proxy": "http://eve:pr0xy-s3cret@127.0.0.1:\(proxy.port)"]
        let device = try await Device.start(on: .start(), options)
        device.keepSecret("pr0xy-s3cret")
        let account = try BusClient(device.bus).account
        try await account.join("webdav://dav.example/dav/sync", Self.credentials)
        #expect(proxy.exchanges.first?.request.path == "http://dav.example/dav/sync/a/")
        #expect(proxy.exchanges.allSatisfy { $0.request.headers["proxy-authorization"] != nil })
        proxy.onRequest { _ in .answer(ServerAnswer(407, ["Proxy-Authenticate": "Basic realm=\"x\""])) }
        #expect(await errorName { try await account.syncNow() } == "BackendUnavailable")
        check(device)
        device.kill()
        device.bus.end()
        proxy.end()
    }

    @Test(arguments: [
        ("http_proxy", "webdav", "http"), ("https_proxy", "webdavs", "http"), ("all_proxy", "webdavs", "socks5h"),
    ]) func `a proxy that is not there is named, and neither the server nor the password`(
        _ variable: String, _ scheme: String, _ proxyScheme: String
    ) async throws {
        for (place, words) in [("127.0.0.1:1", "refuses connections"), ("nowhere.invalid:1", "is unknown")] {
            let proxy = "\(proxyScheme)://eve:pr0xy-s3cret@\(place)"
            let message = try await refusal("\(scheme)://dav.example/x", [variable: proxy])?.message ?? ""
            #expect(message.contains("The proxy \(place) (\(variable)) \(words)"), "\(message)")
            #expect(!message.contains("dav.example") && !message.contains("pr0xy-s3cret"), "\(message)")
        }
    }

    /// Returns the error of signing in through a proxy, with these variables in the service's environment.
    private func refusal(_ url: String, _ environment: [String: String]) async throws -> BusError? {
        var options = Device.Options()
        options.manifests = [ManifestText(notes)]
        options.environment = environment
        let device = try await Device.start(on: .start(), options)
        let account = try BusClient(device.bus).account
        let refusal = await failure { try await account.signIn(url) }
        check(device)
        device.kill()
        device.bus.end()
        return refusal
    }

    @Test func `a server that no_proxy names is reached without a proxy, and one with TLS through a tunnel`()
        async throws
    {
        let proxy = try ScriptedServer { _ in ServerAnswer(403) }
        let place = "http://127.0.0.1:\(proxy.port)"
        let direct = try await refusal("webdav://dav.invalid/x", ["http_proxy": place, "no_proxy": ".invalid"])
        #expect(direct?.message.contains("dav.invalid") == true && proxy.requests.isEmpty)
        let tunnel = try await refusal("webdavs://dav.invalid/x", ["https_proxy": place])
        #expect(tunnel?.message.contains("proxy") == true && tunnel?.message.contains("403") == true)
        #expect(proxy.requests.map(\.method) == ["CONNECT"] && proxy.requests.first?.path == "dav.invalid:443")
        #expect(proxy.requests.allSatisfy { $0.headers["authorization"] == nil })
    }
}

private final class Counter: Sendable {
    private let mutex = Mutex(0)
    func next() -> Int {
        mutex.withLock { number in
            number += 1
            return number
        }
    }
}
