// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Etcd
internal import Foundation
internal import PressureTesting
internal import PropertyList
internal import PropertyListFiles
internal import SDBus
internal import ServerTesting
internal import UbiquitousStoreTesting

/// Measures what others notice of a user whose account is on a server that lies.
struct Remotes: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Signs a user in at servers that lie, and says what another one notices.",
        discussion: "Fails as \"walls\" does.")
    @OptionGroup var options: BusOptions
    @Option(help: "How long to measure without and with each server.") var seconds = 10
    @Option(help: "Which lies; all of them.") var lie: [Lie] = Lie.allCases

    func run() async throws {
        say(Measurement.heading)
        var failures: [String] = []
        for lie in lie {
            if let verdict = try await run(lie) { failures.append("\(lie.rawValue): \(verdict)") }
        }
        guard failures.isEmpty else { throw Failure(failures.joined(separator: "\n")) }
    }

    /// - Returns: the rule that does not hold; `nil` if all do.
    private func run(_ lie: Lie) async throws -> String? {
        let site = try await Site(options.bus, policy: options.policy)
        let server = try lie.start(site.folder)
        let client = try await BusClient(site.bus, as: Site.attacker)
        let account = await client.account
        let before = try await Measurement(of: site, seconds: seconds)
        if lie == .heads {
            let identifier = try await account.signIn(server.url)
            try LyingHeads(account: identifier).write(16, in: "\(site.folder)/u\(Site.attacker)")
        }
        let syncing = Task {
            while !Task.isCancelled {
                do {
                    try await account.syncNow()
                    // What has come is listed, however much it is.
                    try await client.manager("ListStores") { try $0.append(0 as UInt64) }
                    _ = try await account.devices()
                } catch {
                    try? await Task.sleep(for: .milliseconds(20))
                    // Some lies are found out at once, so that the user is not signed in.
                    if try await account.state() == "signed-out" { _ = try? await account.signIn(server.url) }
                }
            }
        }
        let during = try await Measurement(of: site, seconds: seconds)
        syncing.cancel()
        let error = (try? await account.lastError()) ?? ""
        say(before.row(lie.words + server.note + (error.isEmpty ? "" : "; \(error)"), during))
        if site.device.exit != nil { return "the service ended: \(site.device.log)" }
        return during.flaw(before: before)
    }
}

/// A server that lies.
enum LyingServer {
    case etcd(ScriptedServer)
    case webDAV(ScriptedServer)
    /// Lies before there is a secure connection.
    case tls(TLSServer)
    /// Never ends what comes before a secure connection.
    case flood(FloodServer)
    /// Has files that nobody should write.
    case folder(String)

    var url: String {
        switch self {
        case .etcd(let server): "etcd://127.0.0.1:\(server.port)/x"
        case .webDAV(let server): "webdav://127.0.0.1:\(server.port)/x"
        case .tls(let server): "webdavs://127.0.0.1:\(server.port)/x"
        case .flood(let server): "webdavs://127.0.0.1:\(server.port)/x"
        case .folder(let path): "folder://\(path)"
        }
    }

    /// What the server knows of the requests.
    var note: String {
        switch self {
        case .etcd(let server), .webDAV(let server): "; \(server.requests.count) requests"
        case .tls, .folder: ""
        case .flood(let server): "; \(server.sent >> 20) MiB sent"
        }
    }
}

/// The false answers that a server may give.
enum Lie: String, CaseIterable, ExpressibleByArgument, Sendable {
    case numbers, pages, stores, contexts, values, nesting, texts, namespaces, names, compression, handshakes, curves
    case points, heads, devices, identifiers

    /// - Parameter folder: where users may sign in.
    func start(_ folder: String) throws -> LyingServer {
        switch self {
        case .namespaces, .names: .webDAV(try ScriptedServer { [answer = multistatus] _ in answer })
        case .compression: .webDAV(try ScriptedServer { [answer = try compressed()] _ in answer })
        case .handshakes: .flood(try FloodServer(Self.record, atMost: .max))
        case .curves: .tls(try TLSServer(sendsCurve: true))
        case .points: .tls(try TLSServer(extensions: "crlDistributionPoints=\(Self.addresses)\n"))
        case .heads: .folder(folder)
        default: .etcd(try ScriptedServer { answer(to: $0) })
        }
    }

    var words: String {
        switch self {
        case .numbers: "revisions of 2^63 - 1"
        case .pages: "pages of entries without end"
        case .stores: "38,400 stores with long names"
        case .contexts: "a store that 30,000 devices have written to"
        case .values: "answers of 500,000 empty values"
        case .nesting: "answers of 100,000 objects in objects"
        case .texts: "errors of 900 KiB, with zeros"
        case .namespaces: "a million elements of a namespace whose name has 250 bytes"
        case .names: "5 million elements with different names"
        case .compression: "a gigabyte that is compressed twice on its way"
        case .handshakes: "requests for a handshake without end"
        case .curves: "a certificate with a curve of its own"
        case .heads: "16 heads of 4 MiB that take 50 MB each once they are decoded"
        case .devices: "10,000 devices whose names have 255 zeros"
        case .identifiers: "stores whose identifiers have 200,000 characters, or zeros"
        case .points: "a certificate with 1,000 CRL distribution points"
        }
    }

    /// expat puts the namespace before the name of each element, and keeps different names.
    private var multistatus: ServerAnswer {
        let name = String(repeating: "n", count: 250)
        let elements =
            self == .names
            ? (0..<5_000_000).map { "<e\(String($0, radix: 36))/>" }.joined()
            : String(repeating: "<n:e/>", count: 1_000_000)
        return ServerAnswer(
            207, ["Content-Type": "application/xml"],
            "<D:multistatus xmlns:D='DAV:' xmlns:n='\(name)'>\(elements)</D:multistatus>")
    }

    private func compressed() throws -> ServerAnswer {
        let (process, output) = (Process(), Pipe())
        process.executableURL = URL(filePath: "/bin/sh")
        process.arguments = ["-c", "head -c 1G /dev/zero | gzip | gzip"]
        process.standardOutput = output
        try process.run()
        let body = output.fileHandleForReading.readDataToEndOfFile()
        process.waitUntilExit()
        let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, gzip\r\n\r\n"
        return ServerAnswer(bytes: Array(head.utf8) + body, closes: true)
    }

    /// A record with as many requests for a handshake as fit.
    private static let record = [22, 3, 3, 64, 0] + [UInt8](repeating: 0, count: 1 << 14)

    private static let addresses =
        (0..<1000).map { "URI:http://\(String(repeating: "a", count: 60)).example/\($0)" }.joined(separator: ",")

    private func answer(to request: ServerRequest) -> ServerAnswer {
        if self == .nesting {
            let object = "{\"\":{\"\":{\"\":{\"\":0}}}}"
            return ServerAnswer(200, [:], "{\"a\":[\(String(repeating: object + ",", count: 100_000))0]}")
        }
        if self == .texts {
            let text = String(repeating: "\\u0000e", count: 130_000)
            return ServerAnswer(400, [:], "{\"error\":\"\(text)\",\"code\":3}")
        }
        guard let question = try? JSONReader.read(request.body) else { return ServerAnswer(400) }
        let header = "\"header\":{\"revision\":\"\(self == .numbers ? "9223372036854775807" : "7")\"}"
        if request.path.hasSuffix("/range") { return ServerAnswer(200, [:], "{\(header),\(range(question))}") }
        if self == .values {
            return ServerAnswer(200, [:], "{\(header),\"responses\":[\(String(repeating: "[],", count: 500_000))[]]}")
        }
        let ranges = (question["success"]?.elements ?? []).map { operation in
            "{\"response_range\":{\(range(operation["request_range"] ?? .dictionary([:])))}}"
        }
        return ServerAnswer(
            200, [:], "{\(header),\"succeeded\":true,\"responses\":[\(ranges.joined(separator: ","))]}")
    }

    private func range(_ question: Value) -> String {
        let key = String(decoding: question["key"]?.bytes ?? [], as: UTF8.self)
        if key.hasSuffix("/account") { return rows([(key, Self.account)]) }
        if key.hasSuffix("/store/") {
            if self == .identifiers { return rows(Self.longNames.map { (key + $0, []) }) }
            let count = self == .stores ? 38_400 : 1
            return rows((0..<count).map { (key + Self.name($0), []) })
        }
        if key.hasSuffix("/device/"), self == .devices {
            return rows((0..<10_000).map { (key + Self.hexadecimal($0), Self.device) })
        }
        if key.contains("/context/"), self == .contexts {
            return rows((0..<30_000).map { (key + Self.hexadecimal($0), Array("9".utf8)) })
        }
        if key.contains("/entry/"), self == .pages {
            return rows([(key + "k", [UInt8](repeating: 7, count: 500_000))]) + ",\"more\":true"
        }
        return "\"kvs\":[]"
    }

    private func rows(_ rows: [(key: String, value: [UInt8])]) -> String {
        let texts = rows.map { row in
            let (key, value) = (Value.base64(Array(row.key.utf8)).text ?? "", Value.base64(row.value).text ?? "")
            return "{\"key\":\"\(key)\",\"value\":\"\(value)\",\"mod_revision\":\"6\"}"
        }
        return "\"kvs\":[\(texts.joined(separator: ","))]"
    }

    /// An account with one identifier and one transaction.
    private static let account: [UInt8] = [1, 1] + [UInt8](repeating: 0, count: 15) + [2, 1, 0, 0, 0, 0, 0, 0, 0, 5]

    /// A publication, its number, and a device whose identifier and name are zeros.
    private static let device: [UInt8] =
        [UInt8](repeating: 1, count: 8) + [1] + [255, 1] + [UInt8](repeating: 0, count: 255) + [255, 1]
        + [UInt8](repeating: 0, count: 255)

    private static let longNames =
        (0..<20).map { "\($0)" + String(repeating: "n", count: 200_000) } + ["a\u{0}b", "%00", "\u{0}"]

    private static func name(_ number: Int) -> String { "s\(number)" + String(repeating: "n", count: 240) }

    private static func hexadecimal(_ number: Int) -> String {
        let text = String(number + 1, radix: 16)
        return String(repeating: "0", count: 16 - text.count) + text
    }
}
