// SPDX-License-Identifier: Apache-2.0

import CSystemd
import Testing

@testable import SDBus

/// Calls from senders whose credentials aren't known yet.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ArrivalTests {
    /// Records the numbers and senders of calls.
    private final class Notes {
        var numbers: [UInt32] = []
        var senders: Set<String> = []
    }

    private static let notesInterface = Interface<Notes>(
        "org.example.Notes",
        [
            .method("Note", in: ["number": "u", "filling": "ay"], out: ["number": "u"]) { notes, call in
                let number = try call.message.readUInt32()
                notes.numbers.append(number)
                notes.senders.insert(call.peer.uniqueName)
                try call.reply { try $0.append(number) }
            },
            .unguardedProperty("Count", "u", changes: .silently) { notes, message, _ in
                try message.append(UInt32(notes.numbers.count))
            },
        ])

    private let bus: PrivateBus
    private let server: BusConnection
    private let notes = Notes()
    private let slot: Slot

    init() throws {
        bus = try PrivateBus()
        server = try bus.connect("server")
        slot = try server.register(Self.notesInterface, at: "/notes", notes)
    }

    @Test func `what a new caller pipelines is done in its order, whoever answers it`() async throws {
        let client = try bus.connect()
        var order: [String] = []
        var expected: [String] = []
        for number in 0..<200 as Range<UInt32> {
            try start(note(number, on: client), on: client) { order.append("\(number)") }
            expected.append("\(number)")
            guard number % 50 == 0 else { continue }
            let question = try client.newCall(
                server.uniqueName, "/notes", "org.freedesktop.DBus.Introspectable", "Introspect")
            try start(question, on: client) { order.append("description") }
            expected.append("description")
        }
        try await eventually { order.count == expected.count }
        #expect(order == expected)
        #expect(notes.numbers == Array(0..<200))
        #expect(notes.senders == [client.uniqueName])
        #expect(server.admission?.arrivals.requests == 1)
    }

    @Test func `more callers than are remembered come at once, and each is served`() async throws {
        let clients = try (0..<3 * PeerCache.capacity).map { _ in try bus.connect() }
        var answers = 0
        for client in clients {
            for number in 0..<3 as Range<UInt32> {
                try start(note(number, on: client), on: client) { answers += 1 }
            }
            client.flush()
        }
        try await eventually { answers == 3 * clients.count }
        #expect(notes.senders == Set(clients.map(\.uniqueName)))
    }

    @Test func `a new caller's call that expects no reply is done`() async throws {
        let client = try bus.connect()
        // libsystemd marks a call that is sent without waiting for a reply as one that wants none.
        try client.send(try note(7, on: client))
        try await eventually { notes.numbers == [7] }
    }

    @Test func `a new caller's first call may be large`() async throws {
        let client = try bus.connect()
        var answers = 0
        try start(note(1, on: client, filling: 8 << 20), on: client) { answers += 1 }
        try await eventually { answers == 1 }
        #expect(notes.numbers == [1])
    }

    @Test func `a new caller that sends too much before it is known is refused, and then served`() async throws {
        let client = try bus.connect()
        var (answers, refusals) = (0, 0)
        // Some more than fit the limit for one sender.
        let calls = UInt32(Arrivals.senderLimit / (60 << 10) + 4)
        for number in 0..<calls {
            try client.start(try note(number, on: client, filling: 60 << 10), timeout: .seconds(600)) { answer in
                if case .success = answer { answers += 1 } else { refusals += 1 }
            }
        }
        try waitForBus(client)
        try await eventually { answers + refusals == Int(calls) }
        #expect(answers == Arrivals.senderLimit / (60 << 10 + Arrivals.overhead) && answers == notes.numbers.count)
        try start(note(99, on: client), on: client) { answers = 99 }
        try await eventually { answers == 99 }
    }

    @Test func `a new caller's calls wait, whoever answers them, until it has been examined`() async throws {
        var ends: [@BusActor (Result<PeerContext?, BusError>) -> Void] = []
        server.peers.examine = { _, done in ends.append(done) }
        let client = try bus.connect()
        var order: [String] = []
        for number in 0..<3 as Range<UInt32> {
            try start(note(number, on: client), on: client) { order.append("\(number)") }
        }
        let question = try client.newCall(
            server.uniqueName, "/notes", "org.freedesktop.DBus.Introspectable", "Introspect")
        try start(question, on: client) { order.append("description") }
        try await eventually { ends.count == 1 }
        // Others are known by the time that this one is.
        let other = try bus.connect()
        try start(note(9, on: other), on: other) { order.append("other") }
        try await eventually { ends.count == 2 }
        ends[1](.success(nil))
        try await eventually { order == ["other"] }
        try start(note(3, on: client), on: client) { order.append("3") }
        try waitForBus(client)
        let context = PeerContext()
        ends[0](.success(context))
        try await eventually { order == ["other", "0", "1", "2", "description", "3"] }
        #expect(notes.numbers == [9, 0, 1, 2, 3])
        #expect(ends.count == 2)
    }

    @Test func `others' calls go on while what a new caller has sent is given back, in its order`() async throws {
        let other = try bus.connect()
        var answers = 0
        try start(note(1000, on: other), on: other) { answers += 1 }
        try await eventually { answers == 1 }
        var end: (@BusActor (Result<PeerContext?, BusError>) -> Void)?
        server.peers.examine = { _, done in end = done }
        let client = try bus.connect()
        for number in 0..<100 as Range<UInt32> { try start(note(number, on: client), on: client) { answers += 1 } }
        try await eventually { end != nil }
        try waitForBus(client)
        try waitForBus(server)
        try start(note(1001, on: other), on: other) { answers += 1 }
        try waitForBus(other)
        end?(.success(nil))
        // These come while the first ones are still held.
        for number in 100..<120 as Range<UInt32> { try start(note(number, on: client), on: client) { answers += 1 } }
        try await eventually { answers == 122 }
        #expect(try #require(notes.numbers.firstIndex(of: 1001)) < 60)
        #expect(notes.numbers.filter { $0 < 1000 } == Array(0..<120))
        #expect(server.holdsCalls == false)
    }

    @Test func `a known caller's large calls come in their order while its first ones are given back`() async throws {
        var end: (@BusActor (Result<PeerContext?, BusError>) -> Void)?
        server.peers.examine = { _, done in end = done }
        let client = try bus.connect()
        var (answers, expected) = (0, 0)
        func send(_ count: Int, filling: Int) throws {
            for _ in 0..<count {
                try start(note(UInt32(expected), on: client, filling: filling), on: client) { answers += 1 }
                expected += 1
            }
        }
        try send(80, filling: 0)
        try await eventually { end != nil }
        try waitForBus(client)
        end?(.success(nil))
        for _ in 0..<6 {
            try send(1, filling: 100 << 10)
            try send(2, filling: 0)
        }
        try await eventually { answers == expected }
        #expect(notes.numbers == Array(0..<UInt32(expected)))
        #expect(server.holdsCalls == false)
    }

    @Test func `a caller in line is served although the one before it has nothing left to give back`() async throws {
        var ends: [@BusActor (Result<PeerContext?, BusError>) -> Void] = []
        server.peers.examine = { _, done in ends.append(done) }
        let clients = try (0..<3).map { _ in try bus.connect() }
        var answers = 0
        for client in clients {
            for number in 0..<60 as Range<UInt32> { try start(note(number, on: client), on: client) { answers += 1 } }
            client.flush()
        }
        try await eventually { ends.count == 3 }
        for client in clients { try waitForBus(client) }
        try waitForBus(server)
        for end in ends { end(.success(nil)) }
        // For this, the first two's calls are given back at once.
        for client in clients.prefix(2) {
            try start(note(60, on: client, filling: 100 << 10), on: client) { answers += 1 }
        }
        try await eventually { answers == 3 * 60 + 2 }
        #expect(server.holdsCalls == false)
    }

    @Test func `the calls of a caller that can't be examined are refused`() async throws {
        server.peers.examine = { _, done in done(.failure(.limitsExceeded("Call again."))) }
        let client = try bus.connect()
        var refusals = 0
        for number in 0..<3 as Range<UInt32> {
            try client.start(try note(number, on: client), timeout: .seconds(600)) { answer in
                if case .failure(let error) = answer, BusError(error).message == "Call again." { refusals += 1 }
            }
        }
        try await eventually { refusals == 3 }
        #expect(notes.numbers.isEmpty)
        server.peers.examine = nil
        var isAnswered = false
        try start(note(7, on: client), on: client) { isAnswered = true }
        try await eventually { isAnswered }
    }

    @Test func `calls are refused for the moment only if the bus doesn't say who sends them`() async throws {
        var isAsked = false
        server.peers.examine = { _, _ in isAsked = true }
        let client = try bus.connect()
        var error: BusError?
        try client.start(try note(1, on: client), timeout: .seconds(600)) { answer in
            if case .failure(let failure) = answer { error = BusError(failure) }
        }
        try await eventually { isAsked }
        server.admission?.arrivals.answered(try #require(client.uniqueName), .failure(BusError.noReply("Too busy.")))
        try await eventually { error != nil }
        #expect(error?.name == BusError.limitsExceeded("").name)
        server.peers.examine = nil
        var isAnswered = false
        try start(note(7, on: client), on: client) { isAnswered = true }
        try await eventually { isAnswered }
        #expect(notes.numbers == [7])
    }

    @Test func `others' calls go on while what a new caller has sent is refused`() async throws {
        let other = try bus.connect()
        var answers: [String] = []
        try start(note(1000, on: other), on: other) { answers.append("other") }
        try await eventually { answers == ["other"] }
        var end: (@BusActor (Result<PeerContext?, BusError>) -> Void)?
        server.peers.examine = { _, done in end = done }
        let client = try bus.connect()
        for number in 0..<200 as Range<UInt32> {
            try client.start(try note(number, on: client), timeout: .seconds(600)) { answer in
                if case .failure(let error) = answer { answers.append(BusError(error).message) }
            }
        }
        try await eventually { end != nil }
        try waitForBus(client)
        try waitForBus(server)
        try start(note(1001, on: other), on: other) { answers.append("other") }
        try waitForBus(other)
        end?(.failure(.limitsExceeded("Call again.")))
        try await eventually { answers.count == 202 }
        #expect(try #require(answers.dropFirst().firstIndex(of: "other")) < 100)
        #expect(answers.count { $0 == "Call again." } == 200)
        #expect(notes.numbers == [1000, 1001])
        #expect(server.holdsCalls == false)
    }

    @Test func `what a user's callers send while they are examined is bounded together`() async throws {
        var ends: [@BusActor (Result<PeerContext?, BusError>) -> Void] = []
        server.peers.examine = { _, done in ends.append(done) }
        let count = 20
        let clients = try (0..<count).map { _ in try bus.connect() }
        var (answers, refusals) = (0, 0)
        for client in clients {
            for number in 0..<7 as Range<UInt32> {
                try client.start(try note(number, on: client, filling: 60 << 10), timeout: .seconds(600)) { answer in
                    if case .success = answer { answers += 1 } else { refusals += 1 }
                }
            }
            client.flush()
        }
        try await eventually { refusals > 0 && ends.count + refusals / 7 >= count }
        // The last ones may not have been examined yet.
        server.peers.examine = nil
        for end in ends { end(.success(nil)) }
        try await eventually { answers + refusals == 7 * count }
        #expect(answers * (60 << 10) <= Arrivals.userLimit + 7 * (60 << 10), "\(answers)")
        #expect(answers * (60 << 10) >= Arrivals.userLimit / 2, "\(answers)")
    }

    @Test func `a connection may go while the bus is asked who calls`() throws {
        var other: BusConnection? = try bus.connect()
        try other?.startAdmission()
        let call = try note(1, on: server)
        try #require(sd_bus_message_set_sender(call.message, server.uniqueName) >= 0)
        other?.admission?.arrivals.hold(call)
        #expect(other?.admission?.arrivals.requests == 1)
        weak let gone = other
        other = nil
        #expect(gone == nil)
    }

    // MARK: Support

    /// Waits until the bus has everything that the client sent. The server reads nothing: its loop is on this thread.
    private func waitForBus(_ client: BusConnection) throws {
        let name = "org.freedesktop.DBus"
        let call = try client.newCall(name, "/org/freedesktop/DBus", name, "GetId")
        try #require(sd_bus_call(client.bus, call.message, 0, nil, nil) >= 0)
    }

    private func note(_ number: UInt32, on client: BusConnection, filling: Int = 0) throws -> Message {
        let call = try client.newCall(server.uniqueName, "/notes", "org.example.Notes", "Note")
        try call.append(number)
        try call.append(bytes: [UInt8](repeating: 0, count: filling))
        return call
    }

    private func start(_ call: Message, on client: BusConnection, answered: @escaping @BusActor () -> Void) throws {
        try client.start(call, timeout: .seconds(600)) { answer in
            if case .success = answer { answered() }
        }
    }
}
