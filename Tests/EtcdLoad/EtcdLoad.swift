// SPDX-License-Identifier: Apache-2.0

// etcd-load URL devices|bare|idle COUNT SECONDS
//
// Runs devices, each in its own account under URL, that change a value and sync, over and over: a poll and a
// transaction each time. Or runs as many bare clients, which send requests of the same kind and size over the same HTTP
// client, and ignore the answers. Prints the number of changes per second.
//
// Idle devices have polled once and wait for hints, which never come. Prints "ready=1" when all wait.

import BackendSupport
import BackendTesting
import Etcd
import Glibc
import HTTPClient
import PropertyList
import PropertyListFiles
import Replication

@main
struct EtcdLoad {
    static func main() async throws {
        let arguments = CommandLine.arguments
        guard arguments.count == 5, let count = Int(arguments[3]), let seconds = Int(arguments[4]) else {
            print("usage: etcd-load URL devices|bare|idle COUNT SECONDS")
            return
        }
        let (url, isBare) = (arguments[1], arguments[2] == "bare")
        if arguments[2] == "idle" { return try await wait(count, url, seconds) }
        let clock = ContinuousClock()
        var changes = 0
        let start = clock.now
        try await withThrowingTaskGroup(of: Int.self) { group in
            for number in 0..<count {
                let place = "\(url)/\(isBare ? "bare" : "device")-\(number)"
                let end = start + .seconds(seconds)
                group.addTask { isBare ? try await BareClient(place).run(until: end) : try await device(place, end) }
            }
            for try await made in group { changes += made }
        }
        print("rate=\(Double(changes) / (clock.now - start).seconds)")
    }

    private static func wait(_ count: Int, _ url: String, _ seconds: Int) async throws {
        // Each device has a connection.
        var limit = rlimit()
        getrlimit(__rlimit_resource_t(7), &limit)
        limit.rlim_cur = limit.rlim_max
        setrlimit(__rlimit_resource_t(7), &limit)
        var backends: [EtcdBackend] = []
        for number in 0..<count {
            let backend = try EtcdBackend.make(url: "\(url)/idle-\(number)", credentials: ServerCredentials())
            let device = BackendDevice("\(number)", seed: UInt64(number + 1), backend: backend)
            try await device.signIn(creating: true)
            device.set("org.example.idle", "setting", .integer(1))
            try await device.sync()
            backends.append(backend)
            Task { for await _ in backend.hints() {} }
        }
        while !backends.allSatisfy(\.traits.givesHints) { try await Task.sleep(for: .milliseconds(100)) }
        print("ready=1")
        fflush(nil)
        try await Task.sleep(for: .seconds(seconds))
    }

    private static func device(_ url: String, _ end: ContinuousClock.Instant) async throws -> Int {
        let backend = try EtcdBackend.make(url: url, credentials: ServerCredentials())
        let device = BackendDevice(url, seed: UInt64(truncatingIfNeeded: url.hashValue), backend: backend)
        try await device.signIn(creating: true)
        var changes = 0
        while ContinuousClock.now < end {
            device.set("org.example.load", "setting.\(changes % 10)", .string(Text("value \(changes)")))
            try await device.sync()
            changes += 1
        }
        await backend.close()
        return changes
    }
}

/// A client that sends what a device sends.
private struct BareClient {
    private let client = HTTPClient(HTTPOptions())
    private let member: HTTPAddress
    private let prefix: String
    private let account = [UInt8](repeating: 7, count: 1044)

    init(_ url: String) throws {
        let parts = url.split(separator: "/", maxSplits: 2)
        guard parts.count == 3, let (host, port) = HTTPAddress.split(parts[1]) else {
            throw RemoteError(.unsupported, "no address")
        }
        member = HTTPAddress(isSecure: false, host: host, port: port, path: "/v3/kv/txn")
        prefix = String(parts[2])
    }

    func run(until end: ContinuousClock.Instant) async throws -> Int {
        var changes = 0
        while ContinuousClock.now < end {
            try await send(look)
            try await send(change(changes))
            changes += 1
        }
        client.close()
        return changes
    }

    private func send(_ body: String) async throws {
        var request = HTTPRequest(
            "POST", member, headers: [("Content-Type", "application/json")], body: Array(body.utf8))
        request.patience = .silence(.seconds(10))
        let response = try await client.send(request)
        guard response.status == 200 else { throw RemoteError(.unavailable, "\(response.status)") }
    }

    private func key(_ name: String) -> String { Base64.encode(Array("\(prefix)/\(name)".utf8)) }

    private var look: String {
        let folders = ["device", "store", "gone"].map {
            #"{"request_range":{"key":"\#(key($0 + "/"))","range_end":"\#(key($0 + "0"))","min_mod_revision":1000000000}}"#
        }
        let rows = ["account", "device/0123456789abcdef"].map { #"{"request_range":{"key":"\#(key($0))"}}"# }
        return #"{"compare":[],"failure":[],"success":[\#((rows + folders).joined(separator: ","))]}"#
    }

    /// Returns a transaction that changes a value. Its condition always holds once the row exists, but is compared.
    private func change(_ number: Int) -> String {
        let row = Base64.encode(account)
        let values = [
            ("account", row), ("entry/org.example.load/setting.\(number % 10)", Base64.encode(Array(account[..<40]))),
            ("context/org.example.load/0123456789abcdef", "MTIzNA=="), ("store/org.example.load", ""),
            ("device/0123456789abcdef", Base64.encode(Array(account[..<60]))),
        ]
        let puts = values.map { #"{"request_put":{"key":"\#(key($0.0))","value":"\#($0.1)"}}"# }
        let compare =
            number == 0
            ? #"{"key":"\#(key("account"))","target":"CREATE","create_revision":0}"#
            : #"{"key":"\#(key("account"))","target":"VALUE","value":"\#(row)"}"#
        let ranges = ["account", "device/0123456789abcdef"].map { #"{"request_range":{"key":"\#(key($0))"}}"# }
        return #"{"compare":[\#(compare)],"success":[\#(puts.joined(separator: ","))],"#
            + #""failure":[\#(ranges.joined(separator: ","))]}"#
    }
}

extension Duration {
    fileprivate var seconds: Double { Double(components.seconds) + Double(components.attoseconds) / 1e18 }
}
