// SPDX-License-Identifier: Apache-2.0

import BackendTesting
import HTTPClient
import PropertyList
import Replication
import Sealing
import SeededRandom
import ServerTesting
import Synchronization
import Testing

@testable import BackendSupport
@testable import Etcd

/// Any cluster may be hostile. Whatever it answers, the service survives, finishes what it does, and says why it could
/// not continue.
@Suite(.timeLimit(.minutes(30)))
struct EtcdHostileTests {
    /// Answers every range alike, with an account wherever one is asked for.
    private final class Server: EtcdGateway {
        var revision: String { answer.withLock(\.revision) }
        private let answer: Mutex<(revision: String, more: @Sendable (EtcdQuestion, Int) -> Value?, count: Int)>

        init(revision: String = "7", _ more: @escaping @Sendable (EtcdQuestion, Int) -> Value? = { _, _ in nil }) {
            answer = Mutex((revision, more, 0))
        }

        var questions: Int { answer.withLock(\.count) }

        func ask(
            _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
        ) async throws(EtcdFailure) -> (answer: Value, time: Int?) {
            let (revision, more, count) = answer.withLock { answer in
                answer.count += 1
                return answer
            }
            if let answer = more(question, count) { return (answer, nil) }
            let header = Value.dictionary(["revision": .string(Text(revision))])
            if question.path == "/v3/kv/range" { return (Self.range(question.body, header), nil) }
            let answers = (question.body["success"]?.elements ?? []).map { operation in
                Value.dictionary(["response_range": Self.range(operation["request_range"] ?? .dictionary([:]), nil)])
            }
            return (.dictionary(["header": header, "succeeded": .boolean(true), "responses": .array(answers)]), nil)
        }

        static func range(_ question: Value, _ header: Value?) -> Value {
            var fields: [Text: Value] = header.map { ["header": $0] } ?? [:]
            if let key = question["key"]?.bytes, key.suffix(8) == Array("/account".utf8)[...] {
                fields["kvs"] = .array([row(key, EtcdAccount([Bits128(high: 1, low: 2)], token: 5).encoded)])
            }
            return .dictionary(fields)
        }

        static func row(_ key: [UInt8], _ value: [UInt8], modified: String = "6") -> Value {
            .dictionary(["key": .base64(key), "value": .base64(value), "mod_revision": .string(Text(modified))])
        }

        func listen(
            _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
        ) async -> Bool {
            let header = Value.dictionary(["revision": .string(Text(revision))])
            _ = take(.dictionary(["header": header, "created": .boolean(true)]))
            return true
        }
        func pause(for time: Duration) async { await Task.yield() }
        func another() -> any EtcdGateway { self }
        func close() {}
    }

    /// Reports a change as soon as a watch begins.
    private final class Talker: EtcdGateway {
        private let counts = Mutex((listenings: 0, rests: 0))
        var listenings: Int { counts.withLock(\.listenings) }
        var rests: Int { counts.withLock(\.rests) }

        func ask(
            _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
        ) async throws(EtcdFailure) -> (answer: Value, time: Int?) { throw .http(.closed, member) }

        func listen(
            _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
        ) async -> Bool {
            let number = counts.withLock { counts in
                counts.listenings += 1
                return counts.listenings
            }
            let row = Server.row(question.body["create_request"]?["key"]?.bytes ?? [], [], modified: "\(number)")
            let header = Value.dictionary(["revision": .string(Text("\(number)"))])
            _ = take(.dictionary(["header": header, "events": .array([.dictionary(["kv": row])])]))
            return true
        }

        func pause(for time: Duration) async { counts.withLock { $0.rests += 1 } }
        func another() -> any EtcdGateway { self }
        func close() {}
    }

    @Test func `a member that has something to tell whenever it is listened to is not listened to without a pause`()
        async throws
    {
        let member = Talker()
        let backend = try backend(member)
        var hints = 0
        for await _ in backend.hints() {
            hints += 1
            if hints == 20 { break }
        }
        #expect(member.listenings == 20 && member.rests == 19)
        await backend.close()
    }

    /// Begins each watch, and ends it at once, or first says that nothing has happened for as long as it is heard.
    private final class Quitter: EtcdGateway {
        private let saysNothing: Bool
        private let waits = Mutex<[Duration]>([])
        private let poll = Mutex<(@Sendable () -> Void)?>(nil)
        var pauses: [Duration] { waits.withLock(\.self) }

        /// Sets what happens in each pause.
        func inPauses(_ poll: @escaping @Sendable () -> Void) { self.poll.withLock { $0 = poll } }

        init(sayingNothing saysNothing: Bool) { self.saysNothing = saysNothing }

        func ask(
            _ question: EtcdQuestion, of member: HTTPAddress, within time: Duration
        ) async throws(EtcdFailure) -> (answer: Value, time: Int?) { throw .http(.closed, member) }

        func listen(
            _ question: EtcdQuestion, to member: HTTPAddress, _ take: @escaping @Sendable (Value?) -> Bool
        ) async -> Bool {
            let header = Value.dictionary(["revision": .string("7")])
            _ = take(.dictionary(["header": header, "created": .boolean(true)]))
            while saysNothing, take(.dictionary([:])) {}
            return true
        }

        func pause(for time: Duration) async {
            waits.withLock { $0.append(time) }
            poll.withLock(\.self)?()
            await Task.yield()
        }
        func another() -> any EtcdGateway { self }
        func close() {}
    }

    @Test(arguments: [false, true])
    func `a member that begins each watch and ends it at once is left alone for longer and longer`(
        saysNothing: Bool
    ) async throws {
        let member = Quitter(sayingNothing: saysNothing)
        let backend = try backend(member)
        let hints = Mutex(0)
        let (watch, asked) = (backend.watch, backend.client.member)
        // What a poll finds out says nothing about watches.
        member.inPauses { watch.follow(asked, after: 7) }
        let listening = Task { for await _ in backend.hints() { hints.withLock { $0 += 1 } } }
        while member.pauses.count < 20 { try await Task.sleep(for: .milliseconds(1)) }
        await backend.close()
        await listening.value
        #expect(hints.withLock(\.self) == 1 && !watch.isLive)
        let pauses = member.pauses.filter { $0 != .milliseconds(100) }
        #expect(zip(pauses, pauses.dropFirst()).allSatisfy { $0.0 <= $0.1 })
        #expect(pauses.last.map { $0 > .seconds(600) } == true)
    }

    private func backend(_ gateway: any EtcdGateway) throws -> EtcdBackend {
        try EtcdBackend.make(
            url: "etcd://127.0.0.1:1/x", gateway: gateway, environment: .system, executor: ThreadExecutor(),
            limits: EtcdLimits())
    }

    private let origin = Origin(bits: 1)

    @Test(arguments: ["9223372036854775807", "4611686018427387904", "-1", "99999999999999999999", "x"])
    func `a revision that no cluster has is refused, and nothing traps`(_ revision: String) async throws {
        let server = Server(revision: revision)
        let backend = try backend(server)
        await #expect(throws: EtcdBackend.corrupt) {
            _ = try await backend.open(creatingAccount: false)
            let pull = try await backend.pull(after: nil, as: origin)
            let cursor = await pull.finish(joined: []).cursor
            _ = try await backend.pull(after: cursor, as: origin)
        }
        for await _ in backend.hints() { break }
        await backend.close()
    }

    @Test func `a cursor with the largest revision, which an older version may have kept, is that of a new device`()
        async throws
    {
        let cursor = EtcdCursor(revision: .max, token: 5)
        #expect(EtcdCursor(decoding: cursor.encoded) == nil)
        let backend = try backend(Server())
        _ = try await backend.open(creatingAccount: false)
        let pull = try await backend.pull(after: cursor.encoded, as: origin)
        #expect(pull.stores == [])
    }

    /// Begins a pull from a cluster that has one store. The test provides the answers to ranges of its entries.
    private func pull(
        store: String = "org.example.Notes", _ page: @escaping @Sendable (_ key: [UInt8], Int) -> Value
    ) async throws -> (pull: any RemotePull, server: Server) {
        let stores = Array("x/store/".utf8)
        let server = Server { question, count in
            let header = Value.dictionary(["revision": .string("7")])
            if question.path == "/v3/kv/range" {
                guard var key = question.body["key"]?.bytes, question.body["range_end"] != nil else { return nil }
                key += [UInt8(ascii: "k")]
                guard case .dictionary(var fields) = page(key, count) else { return nil }
                fields["header"] = header
                return .dictionary(fields)
            }
            let answers = (question.body["success"]?.elements ?? []).map { operation -> Value in
                let range = operation["request_range"] ?? .dictionary([:])
                guard let key = range["key"]?.bytes else { return .dictionary([:]) }
                if key == stores {
                    let row = Server.row(key + Array(store.utf8), [])
                    return .dictionary(["response_range": .dictionary(["kvs": .array([row])])])
                }
                if key.starts(with: Array("x/entry/".utf8)) {
                    return .dictionary(["response_range": page(key + [UInt8(ascii: "k")], count)])
                }
                return .dictionary(["response_range": Server.range(range, nil)])
            }
            return .dictionary(["header": header, "succeeded": .boolean(true), "responses": .array(answers)])
        }
        let backend = try backend(server)
        _ = try await backend.open(creatingAccount: false)
        return (try await backend.pull(after: nil, as: origin), server)
    }

    private static func entry(_ value: [UInt8]) -> [UInt8] {
        let stamp = Stamp(isProvisional: false, wall: 1_700_000_000_000, counter: 0, origin: Origin(bits: 9))
        return EtcdEntry(Entry(stamp: stamp, n: 1, value: value)).encoded
    }

    @Test(arguments: [true, false])
    func `pages without end are refused`(_ isEmpty: Bool) async throws {
        let (pull, server) = try await pull { key, count in
            let rows = isEmpty ? [] : [Server.row(key, Self.entry([UInt8](repeating: 0, count: 1 << 19)))]
            return .dictionary(["kvs": .array(rows), "more": .boolean(true)])
        }
        await #expect(throws: RemoteError.self) { _ = try await pull.change(of: "org.example.Notes") }
        #expect(server.questions < 64)
    }

    @Test func `pages that repeat a key are refused`() async throws {
        let (pull, _) = try await pull { _, _ in
            let row = Server.row(Array("x/entry/org.example.Notes/a".utf8), Self.entry([1]))
            return .dictionary(["kvs": .array([row]), "more": .boolean(true)])
        }
        await #expect(throws: EtcdBackend.corrupt) { _ = try await pull.change(of: "org.example.Notes") }
    }

    @Test(arguments: ["", "a\u{0}b", "a b", String(repeating: "s", count: 256), "\u{1B}[2J", "ü"])
    func `a store whose identifier no store has is none`(_ store: String) async throws {
        #expect(try await pull(store: store) { _, _ in .dictionary([:]) }.pull.stores == [])
    }

    @Test func `what another device is called can be shown`() throws {
        let device = RemoteDevice(
            identifier: "a\u{0}b", name: "\u{1B}]0;\u{202E}" + String(repeating: "ü", count: 5000))
        let row = EtcdDevice(device, publication: 1, count: 1).encoded
        let read = try EtcdDevice(decoding: row).device
        #expect(read.identifier == "a\u{FFFD}b")
        #expect(read.name.utf8.count <= 255 && read.name.hasPrefix("\u{FFFD}]0;\u{FFFD}ü"))
    }

    @Test func `an error text of a megabyte with zeros in it becomes a sentence`() async throws {
        let reason = "\\u0000\\u001b[2J" + String(repeating: "e", count: 1 << 20)
        let server = try ScriptedServer { _ in ServerAnswer(400, [:], "{\"error\":\"\(reason)\",\"code\":3}") }
        let backend = try EtcdBackend.make(url: "etcd://127.0.0.1:\(server.port)/x", credentials: ServerCredentials())
        let error = await #expect(throws: RemoteError.self) { _ = try await backend.open(creatingAccount: false) }
        let message = try #require(error?.message)
        #expect(message.utf8.count <= 1000 && message.unicodeScalars.allSatisfy { $0.value >= 0x20 })
        await backend.close()
    }

    @Test func `an answer of a million empty values is refused before it is decoded`() async throws {
        let values = String(repeating: "[],", count: 1 << 20) + "[]"
        let server = try ScriptedServer { _ in ServerAnswer(200, [:], "{\"header\":{},\"kvs\":[\(values)]}") }
        let backend = try EtcdBackend.make(url: "etcd://127.0.0.1:\(server.port)/x", credentials: ServerCredentials())
        await #expect(throws: RemoteError.self) { _ = try await backend.open(creatingAccount: true) }
        await backend.close()
    }

    @Test(arguments: Array(1...60 as ClosedRange<UInt64>), [false, true])
    func `whatever a cluster answers, a device goes on`(_ seed: UInt64, isEncrypted: Bool) async throws {
        let gateway = HostileGateway(seed: seed, rarity: [3, 20, 200][Int(seed % 3)], isEncrypted: isEncrypted)
        let client = EtcdClient(try EtcdURL("etcd://127.0.0.1:1/x"), .nothing, gateway)
        let backend = EtcdBackend.make(client, .system, protection: isEncrypted ? .testKey : .none)
        let device = BackendDevice("device", seed: seed, backend: backend)
        for number in 0..<20 as Range<Int64> {
            // Whatever fails is retried later.
            do {
                try await device.signIn(creating: true)
                device.set("org.example.Notes", "a", .integer(number))
                try await device.sync()
                try await device.collectGarbage()
                try await (backend as? any KeyHolding)?.removeFormerForms()
            } catch {
                #expect((error as? RemoteError)?.message.utf8.count ?? 0 <= 1000)
            }
        }
        var hints = backend.hints().makeAsyncIterator()
        for _ in 0..<4 { _ = await hints.next() }
        await backend.close()
    }
}
