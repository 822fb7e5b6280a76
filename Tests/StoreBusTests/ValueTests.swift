// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct ValueTests {
    let pair: EchoPair

    init() throws {
        pair = try EchoPair()
    }

    // MARK: One form out

    @Test func `each type goes out in its one form and comes back as it was`() async throws {
        let values: [(Value, String)] = [
            (.boolean(true), "b"), (.boolean(false), "b"), (.integer(0), "x"), (.integer(.max), "x"),
            (.integer(.min), "x"), (.real(1), "d"), (.real(-0.0), "d"), (.real(.infinity), "d"),
            (.real(Double(bitPattern: 0x7ff0_dead_beef_0001)), "d"), (.string(""), "s"), (.string("é"), "s"),
            (.string("e\u{301}"), "s"), (.data([]), "ay"), (.data([0, 255]), "ay"), (.date(0), "(d"),
            (.date(-0.0), "(d"), (.date(769_478_400.000_000_1), "(d"), (.date(.leastNonzeroMagnitude), "(d"),
            (.array([]), "av"), (.array([.integer(1), .real(1), .boolean(true)]), "av"), (.dictionary([:]), "a{sv}"),
            (.dictionary(["": .data([]), "é": .integer(1), "e\u{301}": .integer(2)]), "a{sv}"),
        ]
        for (value, type) in values {
            let (back, sent) = try await pair.give(value)
            #expect(back == value && sent == type, "\(value)")
        }
    }

    // MARK: Several forms in

    @Test func `every integer type becomes an integer`() async throws {
        #expect(try await read("y") { try $0.append(UInt8.max) } == .integer(255))
        #expect(try await read("n") { try $0.append(Int16.min) } == .integer(-32768))
        #expect(try await read("q") { try $0.append(UInt16.max) } == .integer(65535))
        #expect(try await read("i") { try $0.append(Int32.min) } == .integer(-2_147_483_648))
        #expect(try await read("u") { try $0.append(UInt32.max) } == .integer(4_294_967_295))
        #expect(try await read("x") { try $0.append(Int64.min) } == .integer(.min))
        #expect(try await read("t") { try $0.append(UInt64(Int64.max)) } == .integer(.max))
        #expect(await refusal("t") { try $0.append(UInt64(Int64.max) + 1) } == "InvalidValue")
    }

    @Test func `a value with more elements than a value may have bytes is not read to its end`() async throws {
        func arrays(_ count: Int) -> @BusActor (Message) throws -> Void {
            { message in
                try message.container("v", "aay") {
                    try message.container("a", "ay") {
                        for _ in 0..<count { try message.append(bytes: []) }
                    }
                }
            }
        }
        #expect(try await pair.excess(arrays(100)) == 0)
        #expect(try await pair.excess(arrays(101)) == 2001)
        let entries = try await pair.excess { message in
            try message.container("v", "a{sb}") {
                try message.container("a", "{sb}") {
                    for number in 0..<101 {
                        try message.container("e", "sb") {
                            try message.append("\(number)")
                            try message.append(true)
                        }
                    }
                }
            }
        }
        #expect(entries == 2001)
    }

    @Test func `arrays of one type become arrays`() async throws {
        let integers = try await read("ai") { message in
            try message.container("a", "i") { for number in [1, -2] as [Int32] { try message.append(number) } }
        }
        #expect(integers == .array([.integer(1), .integer(-2)]))
        #expect(try await read("as") { try $0.append(strings: ["a", ""]) } == .array([.string("a"), .string("")]))
        let nested = try await read("aav") { message in
            try message.container("a", "av") {
                try message.container("a", "v") { try message.append(variant: .boolean(true)) }
                try message.container("a", "v") {}
            }
        }
        #expect(nested == .array([.array([.boolean(true)]), .array([])]))
        let data = try await read("aay") { message in
            try message.container("a", "ay") { try message.append(bytes: [1]) }
        }
        #expect(data == .array([.data([1])]))
        let dates = try await read("a(d)") { message in
            try message.container("a", "(d)") { try message.container("r", "d") { try message.append(1.5) } }
        }
        #expect(dates == .array([.date(1.5)]))
        #expect(try await read("ad") { try $0.container("a", "d") {} } == .array([]))
    }

    @Test func `dictionaries of one type become dictionaries`() async throws {
        let strings = try await read("a{ss}") { message in
            try message.container("a", "{ss}") {
                try message.container("e", "ss") {
                    try message.append("k")
                    try message.append("v")
                }
            }
        }
        #expect(strings == .dictionary(["k": .string("v")]))
        let arrays = try await read("a{sai}") { message in
            try message.container("a", "{sai}") {
                try message.container("e", "sai") {
                    try message.append("k")
                    try message.container("a", "i") {}
                }
            }
        }
        #expect(arrays == .dictionary(["k": .array([])]))
    }

    @Test func `sixty variants in variants are one value`() async throws {
        let value = try await pair.read { message in
            try nest(60, message) { try message.container("v", "x") { try message.append(Int64(7)) } }
        }
        #expect(value == .integer(7))
    }

    private func nest(_ count: Int, _ message: Message, _ body: () throws -> Void) throws {
        if count == 1 { return try body() }
        try message.container("v", "v") { try nest(count - 1, message, body) }
    }

    // MARK: Refused

    @Test func `what is no property list is refused by its name`() async throws {
        #expect(await refusal("o") { try $0.append(objectPath: "/a") } == "InvalidValue")
        #expect(await refusal("g") { try $0.append(signature: "s") } == "InvalidValue")
        #expect(await refusal("(s)") { m in try m.container("r", "s") { try m.append("a") } } == "InvalidValue")
        let pairOfReals = await refusal("(dd)") { message in
            try message.container("r", "dd") {
                try message.append(1.0)
                try message.append(2.0)
            }
        }
        #expect(pairOfReals == "InvalidValue")
        for seconds in [Double.nan, .infinity, -.infinity] {
            #expect(
                await refusal("(d)") { m in try m.container("r", "d") { try m.append(seconds) } } == "InvalidValue"
            )
        }
    }

    @Test(arguments: ["o", "g", "h", "(s)", "(dd)", "{iv}", "{ov}", "ao", "a{is}", "{sh}", "a(o)"])
    func `an empty array of what is no property list is refused as well`(contents: String) async {
        #expect(await refusal("a" + contents) { try $0.container("a", contents) {} } == "InvalidValue")
    }

    @Test func `a bad element within good ones is refused`() async {
        let name = await refusal("av") { message in
            try message.container("a", "v") {
                try message.append(variant: .integer(1))
                try message.container("v", "o") { try message.append(objectPath: "/") }
            }
        }
        #expect(name == "InvalidValue")
    }

    @Test func `a dictionary with a key twice is refused, and one with two spellings of é is not`() async throws {
        func dictionary(_ keys: [String]) -> @BusActor (Message) throws -> Void {
            { message in
                try message.container("v", "a{sv}") {
                    try message.appendDictionary { for key in keys { try message.append(entry: key, .boolean(true)) } }
                }
            }
        }
        #expect(await errorName { _ = try await pair.read(dictionary(["a", "b", "a"])) } == "InvalidValue")
        let both = try await pair.read(dictionary(["é", "e\u{301}"]))
        #expect(both == .dictionary(["é": .boolean(true), "e\u{301}": .boolean(true)]))
    }

    @Test func `a key that comes twice in arguments is refused`() async throws {
        func arguments(_ keys: [String]) -> @BusActor (Message) throws -> Void {
            { message in
                try message.appendDictionary { for key in keys { try message.append(entry: key, .integer(1)) } }
            }
        }
        #expect(try await pair.keys(arguments(["a", "b"])) == ["a", "b"])
        #expect(await errorName { _ = try await pair.keys(arguments(["a", "a"])) } == "InvalidArgs")
        #expect(try await pair.keys(arguments(["é", "e\u{301}"])).count == 2)
    }

    // MARK: Depth

    @Test(arguments: [false, true])
    func `sixteen containers are read and seventeen are refused`(dictionaries: Bool) async throws {
        func nested(_ depth: Int) -> Value {
            if depth == 0 { return .integer(1) }
            let inner = nested(depth - 1)
            return dictionaries ? .dictionary(["k": inner]) : .array([inner])
        }
        #expect(try await pair.read { try $0.append(variant: nested(16)) } == nested(16))
        #expect(await errorName { _ = try await pair.read { try $0.append(variant: nested(17)) } } == "DepthExceeded")
    }

    @Test func `arrays in their type count as containers, empty as they are`() async {
        let deep = String(repeating: "a", count: 15) + "i"
        #expect(await refusal("a" + deep) { try $0.container("a", deep) {} } == "")
        // The outer array is empty, so the inner ones don't exist.
        #expect(await refusal("aa" + deep) { try $0.container("a", "a" + deep) {} } == "")
    }

    @Test func `containers and variants in turn are counted, the variants are not`() async throws {
        func write(_ depth: Int, _ message: Message) throws {
            try message.container("v", "v") {
                if depth == 0 { return try message.append(variant: .integer(1)) }
                try message.container("v", "av") { try message.container("a", "v") { try write(depth - 1, message) } }
            }
        }
        #expect(try await pair.read { try write(10, $0) }.depth == 10)
    }

    // MARK: Support

    private func read(_ type: String, _ build: @BusActor (Message) throws -> Void) async throws -> Value {
        try await pair.read { message in try message.container("v", type) { try build(message) } }
    }

    private func refusal(_ type: String, _ build: @BusActor (Message) throws -> Void) async -> String {
        await errorName { _ = try await read(type, build) }
    }
}
