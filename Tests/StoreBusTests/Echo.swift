// SPDX-License-Identifier: Apache-2.0

import PropertyList
import SDBus
import StoreBus
import Testing

/// An object that keeps a value that it reads from a variant, and sends it back in its canonical form.
@BusActor
final class Echo {
    var value: Value?
    var signature = ""
}

/// A pair of connections, one of them with an ``Echo``.
@BusActor
struct EchoPair {
    let echo = Echo()
    let client: BusConnection
    private let server: BusConnection
    private let slot: Slot

    init() throws {
        (server, client) = try BusConnection.pair()
        slot = try server.register(
            Interface<Echo>(
                "org.example.Echo",
                [
                    .method("Take", in: ["value": "v"]) { echo, call in
                        echo.value = try call.message.readValue()
                        try call.reply()
                    },
                    .method("TakeLittle", in: ["value": "v"], out: ["needed": "t"]) { _, call in
                        var budget = ValueBudget(for: Limits(totalBytes: 1000, valueBytes: 100))
                        _ = try? call.message.readValue(&budget)
                        try call.reply { try $0.append(UInt64(budget.isExceeded ? budget.bytes : 0)) }
                    },
                    .method("TakeDictionary", in: ["values": "a{sv}"], out: ["keys": "as"]) { _, call in
                        let keys = try call.message.readValues().map(\.key)
                        try call.reply { try $0.append(strings: keys) }
                    },
                    .method("Give", out: ["value": "v"]) { echo, call in
                        try call.reply { try $0.append(variant: echo.value ?? .boolean(false)) }
                    },
                ]
            ),
            at: "/echo",
            echo
        )
    }

    /// Returns the value that the server reads from what `build` writes.
    func read(_ build: @BusActor (Message) throws -> Void) async throws -> Value {
        echo.value = nil
        try await client.invoke(nil, "/echo", "org.example.Echo", "Take", build)
        return try #require(echo.value)
    }

    /// Returns the least number of bytes that a value needs, if it exceeds the limits of a small store; otherwise 0.
    func excess(_ build: @BusActor (Message) throws -> Void) async throws -> UInt64 {
        try await client.call(nil, "/echo", "org.example.Echo", "TakeLittle", build: build) { try $0.readUInt64() }
    }

    /// Returns a value as the client receives it, and its D-Bus type.
    func give(_ value: Value) async throws -> (Value, type: String) {
        echo.value = value
        return try await client.call(nil, "/echo", "org.example.Echo", "Give") { answer in
            guard try answer.enterVariant() else { throw BusError.failed("no variant") }
            let type = try answer.peekType().map { ($0 == "r" ? "(" : String($0)) + (try answer.peekContents()) } ?? ""
            try answer.rewind()
            return (try answer.readValue(), type)
        }
    }

    func keys(_ build: @BusActor (Message) throws -> Void) async throws -> [String] {
        try await client.call(
            nil,
            "/echo",
            "org.example.Echo",
            "TakeDictionary",
            build: build,
            decode: { try $0.readStrings() }
        )
    }
}

/// Returns the last part of the name of the error that `body` throws; "" if it throws none.
@BusActor
func errorName(_ body: @BusActor () async throws -> Void) async -> String {
    do {
        try await body()
        return ""
    } catch {
        return (error as? BusError)?.name.split(separator: ".").last.map(String.init) ?? "\(error)"
    }
}
