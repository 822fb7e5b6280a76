// SPDX-License-Identifier: Apache-2.0

import SDBus

/// An object to call in tests.
@BusActor
final class Thing {
    var size: UInt32 = 7
    var calls = 0
    var kept: [MethodCall] = []
}

struct Mishap: Error, CustomStringConvertible {
    let description = "a mishap"
}

let thingInterface = Interface<Thing>(
    "org.example.Thing",
    [
        .method("Echo", in: ["value": "v"], out: ["value": "v"], sensitive: true) { thing, call in
            thing.calls += 1
            try call.reply { try $0.append(from: call.message) }
        },
        .method("Keep") { thing, call in thing.kept.append(call) },
        .method("Drop") { _, _ in },
        .method("Refuse", in: ["name": "s", "message": "s"]) { _, call in
            throw BusError(name: try call.message.readString(), message: try call.message.readString())
        },
        .method("Stumble") { _, _ in throw Mishap() },
        .method("ReplyWrongly", out: ["number": "u"]) { _, call in try call.reply { try $0.append("not a number") } },
        .method("ReplyHalf", out: ["text": "s"]) { _, call in
            try call.reply {
                try $0.append("half")
                throw BusError.limitsExceeded("enough")
            }
        },
        .method("ReplyTwice", out: ["number": "u"]) { _, call in
            try call.reply { try $0.append(UInt32(1)) }
            try call.reply { try $0.append(UInt32(2)) }
            call.fail(.failed("third"))
        },
        .method("WhoAmI", out: ["name": "s", "uid": "u"]) { _, call in
            try call.reply {
                try $0.append(call.peer.uniqueName)
                try $0.append(call.peer.credentials.uid)
            }
        },
        .signal("Changed", ["reason": "u", "changed_keys": "as"]),
        .unguardedProperty("Size", "u", changes: .silently) { thing, message, _ in try message.append(thing.size) },
        .unguardedProperty("Version", "s", changes: .never) { _, message, _ in try message.append("1.0") },
        .unguardedProperty("Owner", "s", changes: .silently) { _, message, peer in try message.append(peer.uniqueName)
        },
        .unguardedProperty("Secret", "s", changes: .silently) { _, _, _ in throw BusError.accessDenied },
    ]
)

/// A pair of connections, one of them with a ``Thing`` at `/thing`.
@BusActor
struct ThingPair {
    let server: BusConnection
    let client: BusConnection
    let thing = Thing()
    let slot: Slot

    init() throws {
        (server, client) = try BusConnection.pair()
        slot = try server.register(thingInterface, at: "/thing", thing)
    }

    func call<R: Sendable>(
        _ member: String,
        _ build: (Message) throws -> Void = { _ in },
        decode: @escaping @BusActor (Message) throws -> R
    ) async throws -> R {
        try await client.call(nil, "/thing", "org.example.Thing", member, build: build, decode: decode)
    }

    func invoke(_ member: String, _ build: (Message) throws -> Void = { _ in }) async throws {
        try await client.invoke(nil, "/thing", "org.example.Thing", member, build)
    }

    /// Sends a value in a variant, and reads it from the reply.
    func echo<R: Sendable>(
        _ contents: StaticString,
        _ write: (Message) throws -> Void,
        _ read: @escaping @BusActor (Message) throws -> R
    ) async throws -> R {
        try await call(
            "Echo",
            { call in
                try call.container("v", contents) { try write(call) }
            },
            decode: { answer in
                try answer.enterContainer("v", contents)
                let value = try read(answer)
                try answer.exitContainer()
                guard try answer.isAtEnd(whole: true) else { throw Mishap() }
                return value
            }
        )
    }
}

extension BusConnection {
    /// Returns an object's introspection data.
    func introspect(_ destination: String?, _ path: String) async throws -> String {
        try await call(destination, path, "org.freedesktop.DBus.Introspectable", "Introspect") { try $0.readString() }
    }

    /// Returns a property of a ``Thing``, decoded by `read`.
    func property<R: Sendable>(
        _ destination: String?,
        _ path: String,
        _ name: String,
        _ contents: StaticString,
        _ read: @escaping @BusActor (Message) throws -> R
    ) async throws -> R {
        try await call(destination, path, "org.freedesktop.DBus.Properties", "Get") {
            try $0.append("org.example.Thing")
            try $0.append(name)
        } decode: { answer in
            try answer.enterContainer("v", contents)
            return try read(answer)
        }
    }
}

/// Returns the name of the D-Bus error that `body` throws; `nil` if it throws none.
@BusActor
func errorName(_ body: @BusActor () async throws -> Void) async -> String? {
    do {
        try await body()
        return nil
    } catch {
        return (error as? BusError)?.name ?? "\(error)"
    }
}

let standard = "org.freedesktop.DBus.Error."
