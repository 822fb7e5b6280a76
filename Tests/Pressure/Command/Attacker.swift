// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Foundation
internal import PressureTesting
internal import ServerTesting
internal import StoreBus
internal import UbiquitousStoreTesting

/// An attacker that never pauses, in a process of its own.
struct Attacker: ParsableCommand {
    static let configuration = CommandConfiguration(abstract: "Attacks until it is ended.", shouldDisplay: false)
    @Argument(help: "How.") var attack: Attack
    @Argument(help: "The bus.") var address: String
    @Argument(help: "The store.") var path: String
    @Option(help: "How many bytes of an array the bus passes on.") var largest: Int

    /// Starts an attacker.
    static func start(_ attack: Attack, _ site: Site, _ path: String) throws -> ChildProcess {
        let command = [
            try ChildProcess.built("pressure"), "attacker", attack.rawValue, site.bus.address, path,
            "--largest", "\(site.bus.program.largestArray)",
        ]
        let preparations = [
            Attack.mounts: """
            seq 3000 | xargs mkdir
            for number in $(seq 3000); do mount --bind $number $number; done
            """,
            // Each mount contains all that are there already. The kernel copies them with a lock held that /proc waits
            // for.
            .namespaces: """
            mkdir tree
            mount -t tmpfs tmpfs tree
            for number in $(seq 12); do
                mkdir tree/$number
                mount --rbind tree tree/$number
            done
            for number in $(seq 16); do
                while kill -0 $$ 2>/dev/null; do nice -n 19 unshare --mount --propagation private true; done &
            done
            """,
        ]
        guard let preparation = preparations[attack] else { return try ChildProcess(command, as: Site.attacker) }
        let script = """
            mount -t tmpfs tmpfs /mnt
            cd /mnt
            \(preparation)
            exec setpriv --reuid=\(Site.attacker) --regid=\(Site.attacker) --clear-groups -- "$@"
            """
        return try ChildProcess(
            ["unshare", "--mount", "--propagation", "private", "sh", "-ec", script, "sh"] + command)
    }

    /// Whether a process has finished its preparation, and attacks.
    static func isReady(_ process: ChildProcess) -> Bool {
        let name = try? String(contentsOfFile: "/proc/\(process.pid)/comm", encoding: .utf8)
        return name?.hasPrefix("pressure") == true
    }

    func run() throws {
        switch attack {
        case .introspection: try introspect()
        case .booleans: try read(millions: 1)
        case .manyBooleans: try read(millions: 4)
        case .array: try send(signature: "an")
        case .emptyArrays: try send(signature: "aay")
        case .keys: try ask()
        case .waiting: try wait()
        case .crowd: try crowd()
        case .burst: try burst()
        case .fan: try fan()
        case .domains: try fillDomains()
        // Swift takes long to search this as a text.
        case .authorities: try signIn(with: Array(String(repeating: "\u{1F1E6}", count: 16_384).utf8))
        case .curves: try signIn(with: Array(repeating: try TLSServer().curve, count: 16).flatMap(\.self))
        case .gushes: try gush()
        case .unanswered: try flood(1)
        case .unansweredLarge: try flood(1 << 20)
        default: try come()
        }
    }

    /// Makes 8,000 calls a second. At full speed, dbus-daemon would hold gigabytes of its own errors for the attacker,
    /// and answer no one, whatever the service does.
    private func introspect() throws {
        let clients = try (0..<2).map { _ in try RawClient(address: address) }
        while true {
            for client in clients {
                for _ in 0..<4 {
                    client.call(BusNames.service, path, "org.freedesktop.DBus.Introspectable", "Introspect")
                }
            }
            Thread.sleep(forTimeInterval: 0.001)
        }
    }

    /// Sets as many zeros as the bus passes on.
    private func send(signature: String) throws {
        var body = Wire()
        body.string("key")
        body.signature(signature)
        body.array(alignment: signature == "an" ? 2 : 4) { $0.bytes += [UInt8](repeating: 0, count: largest) }
        try repeatedly { $0.store(path, "SetValue", signature: "sv", body: body.bytes, later: true) }
    }

    /// Fills the store, and reads it again and again.
    private func read(millions: Int) throws {
        let client = try RawClient(address: address)
        for number in 0..<millions {
            var booleans = Wire()
            booleans.string(number == 0 ? "large" : "large \(number)")
            booleans.signature("ab")
            booleans.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: 4_000_000) }
            client.store(path, "SetValue", signature: "sv", body: booleans.bytes, later: true)
            while client.turn(waiting: 100)?.contains(where: { $0.replySerial > 1 }) == false {}
        }
        try repeatedly { $0.store(path, "GetSnapshot", 0, 0, later: true) }
    }

    /// Asks for as many empty keys as the bus passes on.
    private func ask() throws {
        var keys = Wire()
        keys.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: largest - 3) }
        try repeatedly { $0.store(path, "GetValues", signature: "as", body: keys.bytes, later: true) }
    }

    /// Requests checks of a silent server on eight connections. Each new check takes the place of the one before it.
    private func wait() throws {
        let server = try ScriptedServer { _ in .nothing }
        var body = Wire()
        body.string("webdav://127.0.0.1:\(server.port)/x")
        body.array(alignment: 8) {
            $0.string("ca-pem")
            $0.signature("ay")
            $0.array(alignment: 1) { $0.bytes += [UInt8](repeating: 65, count: 64 << 10) }
        }
        let account = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex))
        var clients = try (0..<8).map { _ in (client: try RawClient(address: address), waiting: 0) }
        while true {
            for (index, (client, waiting)) in clients.enumerated() {
                // Without a bound, dbus-daemon would refuse most of them itself, and answer no one.
                for _ in waiting..<100 {
                    client.call(
                        BusNames.service, account, BusNames.accountInterface, "CheckBackend", signature: "sa{sv}",
                        body: body.bytes, later: true)
                }
                guard let replies = client.exchange(waiting: 0) else { return }
                clients[index].waiting = 100 - replies
            }
        }
    }

    /// Signs in with certificates to trust.
    private func signIn(with authorities: [UInt8]) throws {
        var body = Wire()
        body.string("webdavs://127.0.0.1:9/x")
        body.array(alignment: 8) {
            $0.string("ca-pem")
            $0.signature("ay")
            $0.array(alignment: 1) { $0.bytes += authorities }
        }
        let account = String(path.prefix(upTo: path.lastIndex(of: "/") ?? path.endIndex))
        let client = try RawClient(address: address)
        var waiting = 0
        while true {
            for _ in waiting..<100 {
                client.call(
                    BusNames.service, account, BusNames.accountInterface, "SignIn", signature: "sa{sv}",
                    body: body.bytes, later: true)
            }
            guard let replies = client.exchange(waiting: 10) else { return }
            waiting = 100 - replies
        }
    }

    /// Sets 30,000 empty arrays through each of 50 connections, which none of them does for long.
    private func crowd() throws {
        var body = Wire()
        body.string("key")
        body.signature("aay")
        body.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: 4 * 30_000) }
        let clients = try (0..<50).map { _ in try RawClient(address: address) }
        func send(_ client: RawClient) {
            client.store(path, "SetValue", signature: "sv", body: body.bytes, later: true)
            _ = client.sendAll()
        }
        for client in clients { send(client) }
        while true {
            for client in clients {
                guard let replies = client.turn(waiting: 0) else { return }
                if !replies.isEmpty { send(client) }
            }
        }
    }

    /// Has a hundred calls under way on each of 60 connections.
    private func burst() throws {
        var body = Wire()
        body.string("org.example.Undeclared")
        body.array(alignment: 8) { _ in }
        var clients = try (0..<60).map { _ in (client: try RawClient(address: address), waiting: 0) }
        while true {
            for (index, (client, waiting)) in clients.enumerated() {
                let wanted = waiting > 50 ? waiting : 100
                for _ in waiting..<wanted {
                    client.call(
                        BusNames.service, BusNames.managerPath, BusNames.managerInterface, "OpenStore",
                        signature: "sa{sv}", body: body.bytes, later: true)
                }
                guard let replies = client.exchange(waiting: 0) else { return }
                clients[index].waiting = wanted - replies
            }
        }
    }

    /// Changes 16,000 keys of a domain, to which 240 connections are subscribed through both of its paths.
    private func fan() throws {
        let domain = "org.example.Fan"
        let paths = try [nil, Site.attacker].map { try BusNames.domainPath(uid: $0, domain: domain) }
        var flags = Wire()
        flags.number(0 as UInt64)
        let clients = try (0..<240).map { _ in try RawClient(address: address) }
        for client in clients {
            for path in paths {
                client.call(
                    BusNames.service, path, BusNames.domainInterface, "Subscribe", signature: "t", body: flags.bytes)
            }
        }
        let writer = try RawClient(address: address)
        for number in 0... {
            let isSent = apply(to: paths[0], by: writer) { entries in
                for key in 0..<16_000 {
                    entries.align(8)
                    entries.string("key \(key)")
                    entries.signature("u")
                    entries.number(UInt32(number))
                }
            }
            guard isSent else { return }
            var isAnswered = false
            while !isAnswered {
                guard let replies = writer.turn(waiting: 1) else { return }
                isAnswered = replies.contains { $0.replySerial > 0 }
                for client in clients { _ = client.turn(waiting: 0) }
            }
        }
    }

    /// Sets a million Booleans in each of 40 domains, and then opens 24 of them again and again.
    private func fillDomains() throws {
        let names = (0..<40).map { "org.example.Booleans\($0)" }
        for name in names {
            let client = try RawClient(address: address)
            let isSent = apply(to: try BusNames.domainPath(uid: nil, domain: name), by: client) {
                $0.string("large")
                $0.signature("ab")
                $0.array(alignment: 4) { $0.bytes += [UInt8](repeating: 0, count: 4_000_000) }
            }
            guard isSent else { return }
            while client.turn(waiting: 100)?.contains(where: { $0.replySerial > 1 }) == false {}
        }
        var body = Wire()
        body.array(alignment: 4) { for name in names.prefix(24) { $0.string(name) } }
        body.array(alignment: 8) { _ in }
        try repeatedly {
            $0.call(
                BusNames.service, BusNames.defaultsPath(uid: nil), BusNames.defaultsInterface, "OpenDomains",
                signature: "asa{sv}", body: body.bytes, later: true)
        }
    }

    /// Sets values in a domain.
    /// - Returns: whether the call is sent.
    private func apply(to path: String, by client: RawClient, _ entries: (inout Wire) -> Void) -> Bool {
        var body = Wire()
        body.array(alignment: 8, entries)
        body.array(alignment: 4) { _ in }
        body.array(alignment: 8) { _ in }
        client.call(
            BusNames.service, path, BusNames.domainInterface, "Apply", signature: "a{sv}asa{sv}", body: body.bytes,
            later: true)
        return client.sendAll()
    }

    /// Sends a call, waits for its reply, and repeats that.
    /// - Throws: `Failure` if the bus passes on none of a hundred calls.
    private func repeatedly(_ send: (RawClient) -> Void) throws {
        while true {
            let client = try RawClient(address: address)
            var refusals = 0
            for _ in 0..<100 {
                send(client)
                _ = client.sendAll()
                guard var replies = client.turn(waiting: 1000) else { break }
                for _ in 0..<100 where replies.isEmpty { replies = client.turn(waiting: 100) ?? [] }
                refusals += replies.count { $0.sender == "org.freedesktop.DBus" && $0.errorName != nil }
            }
            if refusals >= 100 { throw Failure("The bus passes none of these calls on") }
        }
    }

    /// Sets values of so many bytes, as fast as the bus takes them.
    private func flood(_ count: Int) throws {
        while true { try RawClient(address: address).floodUnanswered(path, "key", bytes: count) }
    }

    private func gush() throws {
        while true {
            let client = try RawClient(address: address)
            for number in 0..<6000 as Range<UInt32> { client.set(path, "key", number, later: true) }
            guard client.sendAll() else { continue }
            _ = client.turn(waiting: 100)
            client.end()
        }
    }

    private func come() throws {
        while true {
            let client = try RawClient(address: address)
            client.store(path, "GetSnapshot", 0, 0)
            for _ in 0..<100 {
                guard let replies = client.turn(waiting: 100), replies.isEmpty else { break }
            }
            client.end()
        }
    }
}

extension RawClient {
    /// Waits until everything is sent, and reads what has arrived.
    /// - Parameter milliseconds: how long to wait for something.
    /// - Returns: the number of replies; `nil` if the other end is gone.
    fileprivate func exchange(waiting milliseconds: Int32) -> Int? {
        var count = 0
        repeat {
            guard let messages = turn(waiting: unsentCount > 0 ? 10 : milliseconds) else { return nil }
            count += messages.count { $0.replySerial > 0 }
        } while unsentCount > 0
        return count
    }

    /// Waits until everything is sent.
    /// - Returns: whether the other end takes it.
    fileprivate func sendAll() -> Bool {
        while unsentCount > 0 { if turn(waiting: 10) == nil { return false } }
        return true
    }
}
