// SPDX-License-Identifier: Apache-2.0

import Testing

@testable import SDBus

/// Every incoming call passes admission, and the size of every outgoing message is reported.
@BusActor
@Suite(.timeLimit(.minutes(30)))
struct AdmissionTests {
    private let properties = "org.freedesktop.DBus.Properties"
    /// An interface whose replies are as large as the caller wants.
    private static let much = Interface<Thing>(
        "org.example.Much",
        [
            .method("Bytes", in: ["count": "u"], out: ["bytes": "ay"]) { _, call in
                let count = Int(try call.message.readUInt32())
                try call.reply { try $0.append(bytes: [UInt8](repeating: 0, count: count)) }
            }
        ])

    @Test func `every call passes admission, whoever would answer it`() async throws {
        let ends = try ThingPair()
        var seen: [String] = []
        try ends.server.admitCalls { call in
            seen.append(call.message.member ?? "")
            return true
        }
        _ = try await ends.call("WhoAmI") { try $0.readString() }
        _ = try await ends.client.introspect(nil, "/thing")
        _ = try await ends.client.property(nil, "/thing", "Size", "u") { try $0.readUInt32() }
        _ = await errorName { try await ends.invoke("NoSuchMethod") }
        _ = await errorName { _ = try await ends.client.introspect(nil, "/nowhere") }
        // libsystemd marks a call that is sent without waiting for a reply as one that wants none.
        try ends.client.send(ends.client.newCall(nil, "/thing", "org.example.Thing", "WhoAmI"))
        try await eventually { seen.count == 6 }
        #expect(seen == ["WhoAmI", "Introspect", "Get", "NoSuchMethod", "Introspect", "WhoAmI"])
    }

    @Test
    func `calls that expect no reply are dropped where their sender isn't heard, and others are not`() async throws {
        let ends = try ThingPair()
        var (seen, asked) = (0, 0)
        try ends.server.admitCalls(
            { _ in
                seen += 1
                return true
            },
            ifUnanswered: { _ in
                asked += 1
                return asked == 1
            })
        func send() throws {
            try ends.client.send(ends.client.newCall(nil, "/thing", "org.example.Thing", "WhoAmI"))
        }
        try send()
        try await eventually { seen == 1 }
        for _ in 0..<100 { try send() }
        _ = try await ends.call("WhoAmI") { try $0.readString() }
        #expect(seen == 2 && asked == 101)
    }

    @Test func `a call that was taken over is dispatched later, once`() async throws {
        let ends = try ThingPair()
        var held: [IncomingCall] = []
        try ends.server.admitCalls { call in
            held.append(call)
            return false
        }
        let client = ends.client
        async let answer = client.call(nil, "/thing", "org.example.Thing", "WhoAmI") { try $0.readString() }
        async let described = errorName { _ = try await client.introspect(nil, "/thing") }
        async let mistaken = errorName {
            try await client.invoke(nil, "/thing", "org.example.Thing", "WhoAmI") { try $0.append("more") }
        }
        try await eventually { held.count == 3 }
        for call in held { call.dispatch() }
        #expect(try await answer == "")
        #expect(await described == standard + "LimitsExceeded")
        #expect(await mistaken == standard + "InvalidArgs")
    }

    @Test func `a call that is kept has what can be read of it, and is dispatched as the one that came`() async throws {
        let ends = try ThingPair()
        var kept: [IncomingCall] = []
        try ends.server.admitCalls { call in
            if let copy = call.kept() { kept.append(copy) }
            return false
        }
        let client = ends.client
        async let number = client.call(nil, "/thing", "org.example.Thing", "Echo") { call in
            try call.container("v", "u") { try call.append(7 as UInt32) }
        } decode: { answer in
            try answer.enterContainer("v", "u")
            return try answer.readUInt32()
        }
        // Tasks that begin together run in any order.
        try await eventually { kept.count == 1 }
        async let mistaken = errorName {
            try await client.invoke(nil, "/thing", "org.example.Thing", "WhoAmI") { try $0.append("more") }
        }
        try await eventually { kept.count == 2 }
        #expect(kept.map(\.message.signature) == ["v", "s"])
        #expect(kept.allSatisfy { $0.message.expectsReply && $0.message.path == "/thing" })
        #expect(kept[1].message.argumentSize(atMost: 100) == 12)
        for call in kept { call.dispatch() }
        #expect(try await number == 7)
        #expect(await mistaken == standard + "InvalidArgs")
    }

    @Test func `a call that has let go of its arguments can be answered`() async throws {
        var late: MethodCall?
        let interface = Interface<Thing>(
            "org.example.Late",
            [
                .method("Length", in: ["text": "s"], out: ["length": "u"]) { _, call in
                    let length = try call.message.readString().utf8.count
                    call.releaseArguments()
                    #expect(call.message.argumentSize(atMost: 100) == 0 && !call.message.hasArguments)
                    late = call
                    try call.reply { try $0.append(UInt32(length)) }
                }
            ])
        let ends = try ThingPair()
        let slot = try ends.server.register(interface, at: "/late", Thing())
        let length = try await ends.client.call(nil, "/late", "org.example.Late", "Length") {
            try $0.append("four")
        } decode: {
            try $0.readUInt32()
        }
        #expect(length == 4 && late?.isAnswered == true)
        withExtendedLifetime(slot) {}
    }

    @Test func `properties that had to wait are read as at once`() async throws {
        let ends = try ThingPair()
        let client = ends.client
        func get(_ path: String, _ interface: String, _ name: String) async -> String {
            do {
                return try await client.call(nil, path, properties, "Get") {
                    try $0.append(interface)
                    try $0.append(name)
                } decode: { answer in
                    try answer.enterContainer("v", "s")
                    return try answer.readString()
                }
            } catch {
                return (error as? BusError)?.name ?? "\(error)"
            }
        }
        func names(_ path: String, _ interface: String) async -> [String] {
            do {
                return try await client.call(nil, path, properties, "GetAll") {
                    try $0.append(interface)
                } decode: { answer in
                    var names: [String] = []
                    try answer.readDictionary { name in
                        names.append(name)
                        try answer.skip()
                    }
                    return names
                }
            } catch {
                return [(error as? BusError)?.name ?? "\(error)"]
            }
        }
        func read() async -> [[String]] {
            let plain = [
                await get("/thing", "org.example.Thing", "Version"), await get("/thing", "", "Version"),
                await get("/thing", "org.example.Thing", "Secret"), await get("/thing", "org.example.Thing", "Echo"),
                await get("/thing", "org.example.Other", "Version"),
                await get("/nowhere", "org.example.Thing", "Version"),
            ]
            return [
                plain, await names("/thing", "org.example.Thing"), await names("/nowhere", "org.example.Thing"),
                await names("/open", "org.example.Open"), await names("/open", "").sorted(),
                await names("/open", "org.example.Other"),
            ]
        }
        let open = Interface<Thing>(
            "org.example.Open",
            [
                .unguardedProperty("Size", "u", changes: .silently) {
                    try $1.append($0.size); _ = $2
                },
                .unguardedProperty("Version", "s", changes: .never) { _, message, _ in try message.append("1.0") },
            ])
        let slot = try ends.server.register(open, at: "/open", ends.thing)
        let atOnce = await read()
        #expect(atOnce[0].first == "1.0" && atOnce[3] == ["Size", "Version"])
        try ends.server.admitCalls { call in
            Task { @BusActor in call.dispatch() }
            return false
        }
        let later = await read()
        for (one, other) in zip(later, atOnce) { #expect(one == other) }
        withExtendedLifetime(slot) {}
    }

    @Test func `answers, errors and properties are weighed`() async throws {
        let ends = try ThingPair()
        var weights: [Int] = []
        ends.server.onSent = { _, bytes in weights.append(bytes) }
        _ = try await ends.echo("s", { try $0.append(String(repeating: "x", count: 1000)) }, { try $0.readString() })
        _ = try await ends.call("WhoAmI") { try $0.readString() }
        _ = await errorName { try await ends.invoke("Stumble") }
        _ = try await ends.client.property(nil, "/thing", "Version", "s") { try $0.readString() }
        #expect(weights.count == 4)
        // Contents: "" and a number; the error's sentence; "1.0".
        #expect(weights.suffix(3) == [128 + 12, 128 + 13, 128 + 8])
    }

    @Test func `an answer that is larger than the bus should carry is an error`() async throws {
        let (server, client) = try BusConnection.pair()
        let slot = try server.register(Self.much, at: "/much", Thing())
        func bytes(_ count: UInt32) async throws -> Int {
            try await client.call(nil, "/much", "org.example.Much", "Bytes", build: { try $0.append(count) }) {
                try $0.readBytes().count
            }
        }
        #expect(try await bytes(1 << 20) == 1 << 20)
        #expect(await errorName { _ = try await bytes(17 << 20) } == standard + "LimitsExceeded")
        #expect(try await bytes(1) == 1)
        withExtendedLifetime(slot) {}
    }

    @Test func `a large answer is decided about, and made anew later`() async throws {
        let (server, client) = try BusConnection.pair()
        let slot = try server.register(Self.much, at: "/much", Thing())
        func bytes(_ count: Int) async throws -> Int {
            try await client.call(nil, "/much", "org.example.Much", "Bytes", build: { try $0.append(UInt32(count)) }) {
                try $0.readBytes().count
            }
        }
        var (held, sizes, sent): ([IncomingCall], [Int], [Int]) = ([], [], [])
        server.onSent = { sent.append($1) }
        server.admitLargeAnswer = { call, size in
            sizes.append(size)
            if sizes.count == 1 { held.append(call) }
            return sizes.count > 1
        }
        #expect(try await bytes(Message.largeAnswer - 4) == Message.largeAnswer - 4)
        #expect(sizes.isEmpty)
        async let large = bytes(Message.largeAnswer)
        try await eventually { held.count == 1 }
        #expect(sent.count == 1)
        held[0].dispatch()
        #expect(try await large == Message.largeAnswer)
        #expect(sizes == [Message.largeAnswer + 4, Message.largeAnswer + 4])
        withExtendedLifetime(slot) {}
    }

    @Test func `texts of errors are bounded, and have nothing that can't be sent or shown`() async throws {
        let ends = try ThingPair()
        func refusal(_ text: String) async -> String {
            do {
                try await ends.invoke("Refuse") {
                    try $0.append("org.example.Error")
                    try $0.append(text)
                }
                return ""
            } catch {
                return (error as? BusError)?.message ?? ""
            }
        }
        #expect(await refusal("A sentence, \u{e9}.") == "A sentence, \u{e9}.")
        #expect(await refusal("a\u{1B}[31mb\nc") == "a\u{FFFD}[31mb\u{FFFD}c")
        let long = await refusal(String(repeating: "x", count: 1 << 20))
        #expect(long.utf8.count == 2048 && long.hasSuffix("x\u{2026}"))
    }

    @Test func `a size is what the wire has`() throws {
        let (_, client) = try BusConnection.pair()
        func size(_ write: (Message) throws -> Void) throws -> Int {
            let message = try client.newCall(nil, "/", "a.b", "C")
            try write(message)
            return message.size
        }
        #expect(try size { try $0.append("abc") } == 8)
        #expect(try size { try $0.append(true) } == 4)
        #expect(
            try size {
                try $0.append(UInt8(1)); try $0.append(UInt64(1))
            } == 16)
        // A length, padding, then per entry: padding to 8, the key, the signature, the number.
        #expect(
            try size { message in
                try message.container("a", "{sv}") {
                    for key in ["a", "b"] {
                        try message.container("e", "sv") {
                            try message.append(key)
                            try message.container("v", "b") { try message.append(true) }
                        }
                    }
                }
            } == 8 + 16 + 16
        )
    }
}
