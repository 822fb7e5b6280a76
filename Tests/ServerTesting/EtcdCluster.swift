// SPDX-License-Identifier: Apache-2.0

internal import Foundation
internal import Glibc
internal import Synchronization

/// A real etcd cluster on loopback, with its own directories and ports. Its processes are killed on release.
public final class EtcdCluster: Sendable {
    /// Whether etcd and etcdctl are installed.
    public static let isInstalled = [Release.debian.program, "/usr/bin/etcdctl"].allSatisfy {
        (program: String) in Glibc.access(program, X_OK) == 0
    }

    /// The releases of etcd that tests run with.
    public enum Release: String, CaseIterable, Sendable {
        /// Debian's release: 3.4 in Debian 12.
        case debian
        /// Release 3.5, from PyPI.
        case newer

        fileprivate var program: String {
            switch self {
            case .debian: "/usr/bin/etcd"
            case .newer: Cache.path + "/etcd/etcd"
            }
        }

        /// The installed releases.
        public static var installed: [Release] { allCases.filter { Glibc.access($0.program, X_OK) == 0 } }
        /// The release for tests that don't name one. `UBIQUITOUS_STORE_TEST_ETCD=newer` makes it 3.5.
        public static let usual =
            ProcessInfo.processInfo.environment["UBIQUITOUS_STORE_TEST_ETCD"].flatMap(Release.init) ?? .debian
    }

    /// The user who may read and write everything under ``prefix``, if the cluster requires authentication.
    public static let user = "ada"
    /// The user's password.
    public static let password = "s3cret-0f-the-tests"
    /// The prefix of the user's keys.
    public static let prefix = "settings/ada"
    private static let root = "root:r00t"

    /// The properties of a cluster.
    public struct Options: Sendable {
        /// The number of members.
        public var members = 1
        /// Whether clients connect over TLS.
        public var isSecure = false
        /// Whether clients have to authenticate.
        public var requiresUser = false
        /// The most bytes of a member's database; 0 for etcd's own limit.
        public var quota = 0
        /// The members' release of etcd.
        public var release = Release.usual

        /// Makes options; by default, one member without TLS and authentication.
        public init(
            members: Int = 1, isSecure: Bool = false, requiresUser: Bool = false, quota: Int = 0,
            release: Release = .usual
        ) {
            (self.members, self.isSecure, self.requiresUser, self.quota) = (members, isSecure, requiresUser, quota)
            self.release = release
        }
    }

    /// The cluster's properties.
    public let options: Options
    /// The directory of the cluster's files.
    public let directory: String
    /// The certificate of its authority in PEM; `nil` without TLS.
    public let authority: [UInt8]?
    /// The ports on which the members take requests.
    public let ports: [UInt16]
    private let peerPorts: [UInt16]
    private let processes: Mutex<[pid_t]>
    private let asks = Mutex(false)

    /// Makes the directories and starts all members.
    public init(_ options: Options = Options()) throws {
        self.options = options
        let ports = try (0..<2 * options.members).map { _ in try Socket.freePort() }
        (self.ports, peerPorts) = (Array(ports.prefix(options.members)), Array(ports.suffix(options.members)))
        processes = Mutex([pid_t](repeating: 0, count: options.members))
        directory =
            FileManager.default.temporaryDirectory.path + "/ubiquitous-store-etcd-\(UUID().uuidString.prefix(8))"
        try FileManager.default.createDirectory(atPath: directory, withIntermediateDirectories: true)
        authority = options.isSecure ? try Certificates.make(in: directory) : nil
        for member in 0..<options.members { try launch(member) }
        try waitUntilReady()
        if options.requiresUser { try requireUser() }
    }

    deinit {
        for member in 0..<options.members { kill(member) }
        try? FileManager.default.removeItem(atPath: directory)
    }

    /// The URL of a prefix in the cluster.
    public func url(_ prefix: String = EtcdCluster.prefix) -> String {
        "etcd\(options.isSecure ? "s" : "")://\(ports.map { "127.0.0.1:\($0)" }.joined(separator: ","))/\(prefix)"
    }

    // MARK: Members

    /// Starts a member that was killed, and waits for the cluster.
    public func start(_ member: Int) throws {
        try launch(member)
        try waitUntilReady()
    }

    /// Kills a member.
    public func kill(_ member: Int) {
        processes.withLock { processes in
            if processes[member] > 0 { ServerProcess.end(processes[member]) }
            processes[member] = 0
        }
    }

    /// Freezes a member, or lets it continue.
    public func freeze(_ member: Int, _ isFrozen: Bool = true) {
        processes.withLock { _ = Glibc.kill($0[member], isFrozen ? SIGSTOP : SIGCONT) }
    }

    /// The index of the member that leads.
    public func leader() throws -> Int {
        for _ in 0..<200 {
            for member in living {
                let status = try? control(["endpoint", "status", "-w", "json"], at: [member])
                guard let status, let own = Self.number("member_id", in: status),
                    let leader = Self.number("leader", in: status)
                else { continue }
                if own == leader { return member }
            }
            usleep(50_000)
        }
        throw EtcdMissing(log: "no member leads")
    }

    private static func number(_ name: String, in text: String) -> Substring? {
        guard let range = text.firstRange(of: "\"\(name)\":") else { return nil }
        return text[range.upperBound...].prefix { $0.isNumber }
    }

    private var living: [Int] { processes.withLock { processes in processes.indices.filter { processes[$0] > 0 } } }

    private func launch(_ member: Int) throws {
        guard Self.isInstalled else { throw EtcdMissing() }
        let scheme = options.isSecure ? "https" : "http"
        let client = "\(scheme)://127.0.0.1:\(ports[member])"
        let peers = peerPorts.map { "http://127.0.0.1:\($0)" }
        var arguments = [
            options.release.program, "--name", "n\(member)", "--data-dir", data(member), "--listen-client-urls", client,
            "--advertise-client-urls", client, "--listen-peer-urls", peers[member],
            "--initial-advertise-peer-urls", peers[member], "--initial-cluster", initialCluster,
            "--initial-cluster-state", "new", "--logger", "zap", "--log-level", "warn", "--log-outputs",
            directory + "/log\(member)",
        ]
        if options.isSecure {
            arguments += ["--cert-file", directory + "/cert.pem", "--key-file", directory + "/key.pem"]
        }
        if options.quota > 0 { arguments += ["--quota-backend-bytes", "\(options.quota)"] }
        let pid = try ServerProcess.spawn(arguments, log: directory + "/output\(member)")
        processes.withLock { $0[member] = pid }
    }

    private var initialCluster: String {
        peerPorts.enumerated().map { "n\($0)=http://127.0.0.1:\($1)" }.joined(separator: ",")
    }

    private func data(_ member: Int) -> String { directory + "/data\(member)" }

    /// Waits until the cluster answers, if most members are running.
    private func waitUntilReady() throws {
        guard living.count * 2 > options.members else { return }
        for _ in 0..<1200 {
            if (try? control(["get", "ready"])) != nil { return }
            usleep(50_000)
        }
        let log = living.compactMap { try? String(contentsOfFile: directory + "/log\($0)", encoding: .utf8) }
        throw EtcdMissing(log: log.joined(separator: "\n"))
    }

    // MARK: etcdctl

    /// Runs etcdctl, with all rights.
    /// - Parameter members: the members to ask; `nil` for all that are running.
    @discardableResult
    public func control(_ arguments: [String], at members: [Int]? = nil) throws -> String {
        let scheme = options.isSecure ? "https" : "http"
        let endpoints = (members ?? living).map { "\(scheme)://127.0.0.1:\(ports[$0])" }.joined(separator: ",")
        var command = ["ETCDCTL_API=3", "etcdctl", "--endpoints", endpoints, "--command-timeout", "60s"]
        if options.isSecure { command += ["--cacert", directory + "/ca.pem"] }
        if asks.withLock(\.self) { command += ["--user", Self.root] }
        return try Certificates.run(command + arguments)
    }

    /// Makes the cluster require authentication from now on.
    public func requireUser() throws {
        try control(["user", "add", Self.root])
        try control(["user", "grant-role", "root", "root"])
        try control(["user", "add", "\(Self.user):\(Self.password)"])
        try control(["role", "add", "ada"])
        try control(["role", "grant-permission", "ada", "--prefix=true", "readwrite", Self.prefix + "/"])
        try control(["user", "grant-role", Self.user, "ada"])
        // This user may read, but not write.
        try control(["user", "add", "guest:\(Self.password)"])
        try control(["role", "add", "guest"])
        try control(["role", "grant-permission", "guest", "--prefix=true", "read", Self.prefix + "/"])
        try control(["user", "grant-role", "guest", "guest"])
        try control(["auth", "enable"])
        asks.withLock { $0 = true }
    }

    /// Changes the password of ``user``.
    public func change(password: String) throws {
        try control(["user", "delete", Self.user])
        try control(["user", "add", "\(Self.user):\(password)"])
        try control(["user", "grant-role", Self.user, "ada"])
    }

    /// Writes the contents of the cluster to a file.
    public func save(to name: String) throws {
        try control(["snapshot", "save", directory + "/" + name], at: [living.first ?? 0])
    }

    /// Restarts the cluster with the contents of a file, and forgets everything else.
    public func restore(from name: String) throws {
        for member in 0..<options.members {
            kill(member)
            try? FileManager.default.removeItem(atPath: data(member))
            try Certificates.run([
                "ETCDCTL_API=3", "etcdctl", "snapshot", "restore", directory + "/" + name, "--name", "n\(member)",
                "--initial-cluster", initialCluster, "--initial-advertise-peer-urls",
                "http://127.0.0.1:\(peerPorts[member])", "--data-dir", data(member),
            ])
        }
        for member in 0..<options.members { try launch(member) }
        try waitUntilReady()
    }

    /// Forgets all revisions but the present one.
    public func compact() throws {
        let status = try control(["endpoint", "status", "-w", "json"], at: [living.first ?? 0])
        try control(["compact", String(Self.number("revision", in: status) ?? "1")])
    }
}

/// etcd is not installed, or does not start.
public struct EtcdMissing: Error, CustomStringConvertible {
    var log = ""

    /// What to do about it.
    public var description: String {
        log.isEmpty ? "etcd is not installed: script/bootstrap --all installs it" : "etcd does not start: \(log)"
    }
}
