// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct MessageTests {
    @Test func `each basic type comes back as it was`() async throws {
        let ends = try ThingPair()
        for value in [true, false] {
            #expect(try await ends.echo("b", { try $0.append(value) }, { try $0.readBool() }) == value)
        }
        #expect(try await ends.echo("y", { try $0.append(UInt8.max) }, { try $0.readByte() }) == .max)
        #expect(try await ends.echo("n", { try $0.append(Int16.min) }, { try $0.readInt16() }) == .min)
        #expect(try await ends.echo("q", { try $0.append(UInt16.max) }, { try $0.readUInt16() }) == .max)
        #expect(try await ends.echo("i", { try $0.append(Int32.min) }, { try $0.readInt32() }) == .min)
        #expect(try await ends.echo("u", { try $0.append(UInt32.max) }, { try $0.readUInt32() }) == .max)
        #expect(try await ends.echo("x", { try $0.append(Int64.min) }, { try $0.readInt64() }) == .min)
        #expect(try await ends.echo("t", { try $0.append(UInt64.max) }, { try $0.readUInt64() }) == .max)
        #expect(try await ends.echo("o", { try $0.append(objectPath: "/a/b") }, { try $0.readString() }) == "/a/b")
        #expect(try await ends.echo("g", { try $0.append(signature: "a{sv}") }, { try $0.readString() }) == "a{sv}")
    }

    @Test(arguments: [0, -0.0, 1.5, .infinity, .nan, .leastNonzeroMagnitude, -.greatestFiniteMagnitude])
    func `a real keeps its bits`(value: Double) async throws {
        let back = try await ThingPair().echo("d", { try $0.append(value) }, { try $0.readDouble() })
        #expect(back.bitPattern == value.bitPattern)
    }

    @Test(arguments: ["", "a", "é", "e\u{301}", "日本語 🏳️‍🌈", String(repeating: "x", count: 100_000)])
    func `a string keeps its UTF-8`(value: String) async throws {
        let back = try await ThingPair().echo("s", { try $0.append(value) }, { try $0.readString() })
        #expect(Array(back.utf8) == Array(value.utf8))
    }

    @Test func `a string with U+0000 is refused when it is written`() async throws {
        let ends = try ThingPair()
        for text in ["\0", "a\0", "a\0b"] {
            #expect(
                await errorName { _ = try await ends.echo("s", { try $0.append(text) }, { try $0.readString() }) }
                    == standard + "InvalidArgs"
            )
        }
        #expect(
            await errorName { try await ends.invoke("Echo") { try $0.append(objectPath: "/a\0b") } }
                == standard + "InvalidArgs"
        )
        #expect(ends.thing.calls == 0)
    }

    @Test(arguments: [[], [0], Array(0...255)] as [[UInt8]])
    func `bytes come back as they were`(bytes: [UInt8]) async throws {
        let ends = try ThingPair()
        #expect(try await ends.echo("ay", { try $0.append(bytes: bytes) }, { try $0.readBytes() }) == bytes)
        let raw = try await ends.echo(
            "ay",
            { call in try bytes.withUnsafeBytes { try call.append(bytes: $0) } },
            { try $0.readBytes() }
        )
        #expect(raw == bytes)
    }

    @Test func `more bytes than are allowed are an error, which the caller may choose`() async throws {
        let ends = try ThingPair()
        for (error, name) in [(nil, "LimitsExceeded"), (BusError.invalidArguments("Fewer."), "InvalidArgs")] {
            #expect(
                await errorName {
                    _ = try await ends.echo(
                        "ay", { try $0.append(bytes: [1, 2, 3]) }, { try $0.readBytes(atMost: 2, orThrow: error) })
                } == standard + name)
        }
        #expect(
            try await ends.echo("ay", { try $0.append(bytes: [1, 2]) }, { try $0.readBytes(atMost: 2) }) == [1, 2])
    }

    @Test(arguments: [[], [""], ["b", "a"]])
    func `strings come back in order`(strings: [String]) async throws {
        let back = try await ThingPair().echo("as", { try $0.append(strings: strings) }, { try $0.readStrings() })
        #expect(back == strings)
    }

    @Test func `containers in containers come back as they were`() async throws {
        let back = try await ThingPair().echo(
            "a{sv}",
            { call in
                try call.container("a", "{sv}") {
                    try call.container("e", "sv") {
                        try call.append("when")
                        try call.container("v", "(d)") { try call.container("r", "d") { try call.append(2.5) } }
                    }
                    try call.container("e", String("sv")) {
                        try call.append("skipped")
                        try call.container("v", String("as")) { try call.append(strings: ["x"]) }
                    }
                }
            },
            { answer in
                var result: [String: Double] = [:]
                try answer.readDictionary { key in
                    guard key == "when" else { return try answer.skip() }
                    guard try answer.peekType() == "v", try answer.peekContents() == "(d)" else { throw Mishap() }
                    try answer.enterContainer("v", String("(d)"))
                    try answer.enterContainer("r", "d")
                    result[key] = try answer.readDouble()
                    try answer.exitContainer()
                    try answer.exitContainer()
                }
                return result
            }
        )
        #expect(back == ["when": 2.5])
    }

    @Test func `reading another type than comes, or past the end, is the sender's mistake`() async throws {
        let ends = try ThingPair()
        #expect(
            await errorName { _ = try await ends.echo("s", { try $0.append("5") }, { try $0.readUInt32() }) }
                == standard + "InvalidArgs"
        )
        #expect(
            await errorName { _ = try await ends.echo("u", { try $0.append(5 as UInt32) }, { try $0.readString() }) }
                == standard + "InvalidArgs"
        )
        #expect(
            await errorName {
                _ = try await ends.echo(
                    "s",
                    { try $0.append("5") },
                    { answer in
                        _ = try answer.readString()
                        return try answer.readString()
                    }
                )
            } == standard + "InvalidArgs"
        )
    }

    @Test func `a message can be read twice`() async throws {
        let back = try await ThingPair().echo(
            "s",
            { try $0.append("again") },
            { answer in
                let first = try answer.readString()
                guard try answer.peekType() == nil, try answer.isAtEnd(whole: false) else { throw Mishap() }
                try answer.rewind(whole: false)
                return [first, try answer.readString()]
            }
        )
        #expect(back == ["again", "again"])
    }

    @Test func `a call tells what it is`() async throws {
        let ends = try ThingPair()
        async let pending: Void = ends.invoke("Keep")
        try await eventually { !ends.thing.kept.isEmpty }
        let message = ends.thing.kept[0].message
        #expect(message.path == "/thing" && message.interface == "org.example.Thing" && message.member == "Keep")
        #expect(message.signature == "" && message.expectsReply && message.errorName == nil && message.sender == nil)
        try ends.thing.kept[0].reply()
        try await pending
    }
}
