// SPDX-License-Identifier: Apache-2.0

import SDBus
import Testing

@BusActor
@Suite(.timeLimit(.minutes(30)))
struct InterfaceTests {
    // MARK: Answers

    @Test func `an answer that is put off arrives when it is given`() async throws {
        let ends = try ThingPair()
        let pending = Task { try await ends.invoke("Keep") }
        try await eventually { ends.thing.kept.count == 1 }
        try await ends.invoke("Echo") { call in try call.container("v", "s") { try call.append("meanwhile") } }
        #expect(!ends.thing.kept[0].isAnswered)
        try ends.thing.kept[0].reply()
        try await pending.value
    }

    @Test func `an answer that is put off still has to be of the interface's type after the registration ended`()
        async throws
    {
        let (server, client) = try BusConnection.pair()
        var kept: MethodCall?
        var slot: Slot? = try server.register(
            Interface<Thing>("org.example.Late", [.method("Keep", out: ["n": "u"]) { _, call in kept = call }]),
            at: "/late",
            Thing()
        )
        let pending = Task { try await client.call(nil, "/late", "org.example.Late", "Keep") { try $0.readUInt32() } }
        try await eventually { kept != nil }
        #expect(slot != nil)
        slot = nil
        try kept?.reply { try $0.append(UInt32(5)) }
        #expect(try await pending.value == 5)
    }

    @Test func `a call that nobody answers fails`() async throws {
        let ends = try ThingPair()
        #expect(await errorName { try await ends.invoke("Drop") } == standard + "Failed")
        let pending = Task { await errorName { try await ends.invoke("Keep") } }
        try await eventually { ends.thing.kept.count == 1 }
        ends.thing.kept = []
        #expect(await pending.value == standard + "Failed")
    }

    @Test func `an error keeps its name and message`() async throws {
        let ends = try ThingPair()
        let error = await #expect(throws: BusError.self) {
            try await ends.invoke("Refuse") {
                try $0.append("org.example.Error.Odd")
                try $0.append("too odd")
            }
        }
        #expect(error == BusError(name: "org.example.Error.Odd", message: "too odd"))
        let other = await #expect(throws: BusError.self) { try await ends.invoke("Stumble") }
        #expect(other == .failed("a mishap"))
    }

    @Test func `an answer that can't be built becomes an error`() async throws {
        let ends = try ThingPair()
        #expect(await errorName { try await ends.invoke("ReplyWrongly") } == standard + "Failed")
        #expect(await errorName { try await ends.invoke("ReplyHalf") } == standard + "LimitsExceeded")
    }

    @Test func `only the first answer is sent`() async throws {
        let ends = try ThingPair()
        #expect(try await ends.call("ReplyTwice") { try $0.readUInt32() } == 1)
        try await ends.invoke("Echo") { call in try call.container("v", "b") { try call.append(true) } }
    }

    @Test func `arguments of other types and unknown methods are refused`() async throws {
        let ends = try ThingPair()
        #expect(await errorName { try await ends.invoke("Echo") { try $0.append("bare") } } == standard + "InvalidArgs")
        #expect(await errorName { try await ends.invoke("Nothing") } == standard + "UnknownMethod")
        #expect(ends.thing.calls == 0)
    }

    // MARK: Introspection and properties

    @Test func `introspection names arguments and how properties change`() async throws {
        let ends = try ThingPair()
        let xml = try await ends.client.introspect(nil, "/thing")
        let lines = Set(xml.split(separator: "\n").map { $0.trimmed })
        for line in [
            #"<interface name="org.example.Thing">"#, #"<method name="Echo">"#,
            #"<arg type="v" name="value" direction="in"/>"#, #"<arg type="v" name="value" direction="out"/>"#,
            #"<signal name="Changed">"#, #"<arg type="u" name="reason"/>"#, #"<arg type="as" name="changed_keys"/>"#,
            #"<property name="Size" type="u" access="read">"#, #"<property name="Version" type="s" access="read">"#,
            #"<annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="false"/>"#,
            #"<annotation name="org.freedesktop.DBus.Property.EmitsChangedSignal" value="const"/>"#,
        ] {
            #expect(lines.contains(line), "\(line) is missing in \(xml)")
        }
        #expect(!xml.contains("Privileged"))
    }

    @Test func `a property is read by itself, and with all others`() async throws {
        let ends = try ThingPair()
        #expect(try await ends.client.property(nil, "/thing", "Size", "u") { try $0.readUInt32() } == 7)
        ends.thing.size = 8
        #expect(try await ends.client.property(nil, "/thing", "Size", "u") { try $0.readUInt32() } == 8)
        #expect(
            await errorName {
                _ = try await ends.client.property(nil, "/thing", "Secret", "s") { try $0.readString() }
            } == standard + "AccessDenied"
        )
        #expect(
            await errorName {
                _ = try await ends.client.property(nil, "/thing", "Missing", "s") { try $0.readString() }
            } == standard + "UnknownProperty"
        )
    }

    @Test func `all properties come in one answer, of the one object that was found`() async throws {
        let (server, client) = try BusConnection.pair()
        var searches = 0
        let slot = try server.register(
            Interface<Thing>(
                "org.example.Both",
                [
                    .unguardedProperty("Size", "u", changes: .silently) { thing, message, _ in
                        try message.append(thing.size)
                    },
                    .unguardedProperty("Half", "u", changes: .silently) { thing, message, _ in
                        try message.append(thing.size / 2)
                    },
                ]
            ),
            under: "/things"
        ) { _, _ in
            searches += 1
            return .object(Thing())
        }
        let values = try await client.call(nil, "/things/a", "org.freedesktop.DBus.Properties", "GetAll") {
            try $0.append("org.example.Both")
        } decode: { answer in
            var values: [String: UInt32] = [:]
            try answer.readDictionary { key in
                try answer.enterContainer("v", "u")
                values[key] = try answer.readUInt32()
                try answer.exitContainer()
            }
            return values
        }
        #expect(values == ["Size": 7, "Half": 3])
        #expect(searches == 1)
        withExtendedLifetime(slot) {}
    }

    // MARK: Finding objects

    @Test func `an object that isn't found doesn't exist, in calls, properties and introspection`() async throws {
        let (server, client) = try BusConnection.pair()
        let thing = Thing()
        let slot = try server.register(thingInterface, under: "/things") { path, _ in
            if path == "/things/broken" { throw BusError.limitsExceeded("too many") }
            return path == "/things/here" ? .object(thing) : nil
        }
        func failure(_ path: String) async -> [String?] {
            [
                await errorName { try await client.invoke(nil, path, "org.example.Thing", "Drop") },
                await errorName { _ = try await client.property(nil, path, "Size", "u") { try $0.readUInt32() } },
                await errorName { _ = try await client.introspect(nil, path) },
            ]
        }
        #expect(await failure("/things/gone") == Array(repeating: standard + "UnknownObject", count: 3))
        #expect(await failure("/things/broken") == Array(repeating: standard + "LimitsExceeded", count: 3))
        #expect(await failure("/things/here") == [standard + "Failed", nil, nil])
        withExtendedLifetime(slot) {}
    }

    @Test func `an object that was found is let go of after its message`() async throws {
        let (server, client) = try BusConnection.pair()
        weak var found: Thing?
        let slot = try server.register(thingInterface, under: "/things") { _, _ in
            let thing = Thing()
            found = thing
            return .object(thing)
        }
        #expect(try await client.property(nil, "/things/a", "Size", "u") { try $0.readUInt32() } == 7)
        #expect(found == nil)
        #expect(await errorName { try await client.invoke(nil, "/things/a", "org.example.Thing", "Drop") } != nil)
        #expect(found == nil)
        withExtendedLifetime(slot) {}
    }

    @Test func `an object is loaded once a member is called or read, and once for a message`() async throws {
        let (server, client) = try BusConnection.pair()
        var loads = 0
        let slot = try server.register(thingInterface, under: "/things") { path, _ in
            .unloaded {
                loads += 1
                if path == "/things/broken" { throw BusError.limitsExceeded("too many") }
                return Thing()
            }
        }
        #expect(try await client.introspect(nil, "/things/a").contains("org.example.Thing"))
        #expect(loads == 0)
        #expect(try await client.property(nil, "/things/a", "Size", "u") { try $0.readUInt32() } == 7)
        #expect(loads == 1)
        // One of the properties can't be read.
        let all = await errorName {
            try await client.invoke(nil, "/things/a", "org.freedesktop.DBus.Properties", "GetAll") {
                try $0.append("org.example.Thing")
            }
        }
        #expect(all == standard + "AccessDenied")
        #expect(loads == 2)
        let limits = standard + "LimitsExceeded"
        #expect(
            await errorName { try await client.invoke(nil, "/things/broken", "org.example.Thing", "Drop") } == limits)
        #expect(
            await errorName {
                _ = try await client.property(nil, "/things/broken", "Size", "u") { try $0.readUInt32() }
            }
                == limits)
        withExtendedLifetime(slot) {}
    }

    @Test func `the prefix can be an object itself`() async throws {
        let (server, client) = try BusConnection.pair()
        let slot = try server.register(thingInterface, under: "/things") { path, _ in
            path == "/things" ? .object(Thing()) : nil
        }
        #expect(try await client.property(nil, "/things", "Size", "u") { try $0.readUInt32() } == 7)
        withExtendedLifetime(slot) {}
    }

    @Test func `two interfaces of different objects share a path`() async throws {
        final class Other {}
        let (server, client) = try BusConnection.pair()
        let other = Interface<Other>("org.example.Other", [.method("Poke") { _, call in try call.reply() }])
        let slots = [
            try server.register(thingInterface, under: "/things") { _, _ in .object(Thing()) },
            try server.register(other, under: "/things") { path, _ in
                path == "/things/both" ? .object(Other()) : nil
            },
        ]
        try await client.invoke(nil, "/things/both", "org.example.Other", "Poke")
        #expect(try await client.property(nil, "/things/both", "Size", "u") { try $0.readUInt32() } == 7)
        #expect(await errorName { try await client.invoke(nil, "/things/one", "org.example.Other", "Poke") } != nil)
        let xml = try await client.introspect(nil, "/things/one")
        #expect(xml.contains("org.example.Thing") && !xml.contains("org.example.Other"))
        withExtendedLifetime(slots) {}
    }

    @Test func `nothing is left of a registration that ended`() async throws {
        let (server, client) = try BusConnection.pair()
        var thing: Thing? = Thing()
        weak let watched = thing
        var slot: Slot? = try server.register(thingInterface, at: "/thing", try #require(thing))
        try await client.invoke(nil, "/thing", "org.example.Thing", "Echo") { call in
            try call.container("v", "b") { try call.append(true) }
        }
        thing = nil
        #expect(slot != nil && watched != nil)
        slot = nil
        #expect(watched == nil)
        #expect(
            await errorName { try await client.invoke(nil, "/thing", "org.example.Thing", "Drop") }
                == standard + "UnknownObject"
        )
    }

    @Test func `a table with a wrong signature is refused`() throws {
        let (server, _) = try BusConnection.pair()
        #expect(throws: BusError.self) {
            try server.register(
                Interface("org.example.Wrong", [.method("A", in: ["x": "{"]) { _, _ in }]),
                at: "/a",
                Thing()
            )
        }
    }
}

extension Substring {
    var trimmed: String { String(drop { $0 == " " || $0 == "\t" }) }
}
