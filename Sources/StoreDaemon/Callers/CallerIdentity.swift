// SPDX-License-Identifier: Apache-2.0

// What kind of caller a process is. The user id, which the bus vouches for, is the only boundary; this tells a
// sandboxed app from the rest of its user's programs, and refuses where it can't tell.
//
// A service that is not root can read another user's /proc/PID/cgroup and mountinfo and little else, so these
// two decide: a flatpak is in a scope named for it, and everything with a root of its own that is not known is
// refused. A process can only leave this by being replaced under its pid, which the one directory descriptor
// notices.

internal import Glibc
internal import PlainText
internal import Synchronization

/// A caller's engine and app id.
struct CallerIdentity: Equatable, Sendable {
    enum Engine: String, Sendable {
        /// An ordinary program of the user.
        case host
        case flatpak
        /// A sandbox that isn't known, or a caller that could not be looked at.
        case unknown
    }

    let engine: Engine
    /// The app, as the sandbox or the session's systemd calls it, without what can't be sent or shown: whoever may make
    /// control groups has chosen it. For a host program it is only a hint.
    let applicationIdentifier: String

    /// - Parameter applicationIdentifier: any text; the longest name of a file has as many bytes.
    init(engine: Engine, applicationIdentifier: String) {
        self.engine = engine
        self.applicationIdentifier = applicationIdentifier.cleaned(atMost: 255)
    }

    static let unknown = CallerIdentity(engine: .unknown, applicationIdentifier: "")

    /// Looks at a process.
    static func of(pid: Int32?) -> CallerIdentity {
        guard let pid, let process = ProcessDirectory(pid: "\(pid)"), let cgroup = process.read("cgroup"),
            let root = process.rootMount, let hostRoot = hostRoot(), process.isAlive
        else { return .unknown }
        return identity(cgroup: cgroup, root: root, hostRoot: hostRoot)
    }

    /// The root of the first process, which keeps it for as long as the machine is up; `nil` if it can't be read now.
    private static func hostRoot() -> String? {
        knownHostRoot.withLock { root in
            if root == nil { root = ProcessDirectory(pid: "1")?.rootMount }
            return root
        }
    }

    private static let knownHostRoot = Mutex<String?>(nil)

    /// The rule, of what `/proc` says about the process and about the first process.
    static func identity(cgroup: String, root: String, hostRoot: String) -> CallerIdentity {
        let unit = unitName(cgroup)
        if let app = flatpakApplication(unit) { return CallerIdentity(engine: .flatpak, applicationIdentifier: app) }
        // A snap's own root need not differ, so its place in the hierarchy is what tells.
        if cgroup.contains("/snap.") || root != hostRoot { return .unknown }
        return CallerIdentity(engine: .host, applicationIdentifier: hostApplication(unit) ?? "")
    }

    /// The device and the root of what is mounted on `/`, in the last line that says so.
    static func rootMount(_ mountinfo: String) -> String? {
        for line in mountinfo.utf8.split(separator: UInt8(ascii: "\n")).reversed() {
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5).map { Substring($0) }
            if fields.count > 4, fields[4] == "/" { return "\(fields[2]) \(fields[3])" }
        }
        return nil
    }

    /// The last part of the process's path in systemd's hierarchy.
    static func unitName(_ cgroup: String) -> String {
        let lines = cgroup.split(separator: "\n")
        let line =
            lines.first { $0.hasPrefix("0::") && $0 != "0::/" } ?? lines.first { $0.contains(":name=systemd:") } ?? ""
        return line.split(separator: "/").last.map(String.init) ?? ""
    }

    /// The app of a scope that flatpak made: `app-flatpak-ID-INSTANCE.scope`.
    static func flatpakApplication(_ unit: String) -> String? {
        let prefix = "app-flatpak-"
        guard unit.hasPrefix(prefix), unit.hasSuffix(".scope") else { return nil }
        return applicationName(unit.dropFirst(prefix.count).dropLast(6), separator: "-").map(unescaped)
    }

    /// The app of a unit that a desktop made: `app[-LAUNCHER]-ID-RANDOM.scope` or `app[-LAUNCHER]-ID[@RANDOM].service`.
    ///
    /// See systemd's documentation of desktop environments.
    static func hostApplication(_ unit: String) -> String? {
        guard unit.hasPrefix("app-") else { return nil }
        if unit.hasSuffix(".scope") {
            return applicationName(unit.dropFirst(4).dropLast(6), separator: "-").map(withoutLauncher)
        }
        guard unit.hasSuffix(".service") else { return nil }
        let name = unit.dropFirst(4).dropLast(8)
        return withoutLauncher(String(name.prefix { $0 != "@" }))
    }

    private static func applicationName(_ text: Substring, separator: Character) -> String? {
        guard let end = text.lastIndex(of: separator), end > text.startIndex else { return nil }
        return String(text[..<end])
    }

    /// An app id has no `-` that is not escaped, so what is before one is the launcher.
    private static func withoutLauncher(_ text: String) -> String {
        unescaped(text.split(separator: "-").last.map(String.init) ?? text)
    }

    /// Of what an app id may have, a unit's name escapes `-` alone: systemd.unit(5).
    private static func unescaped(_ name: String) -> String { name.replacing("\\x2d", with: "-") }
}

/// `/proc/PID`, opened once: it stays with that process and never becomes another one's.
struct ProcessDirectory: ~Copyable {
    private let descriptor: Int32

    init?(pid: String) {
        descriptor = open("/proc/" + pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Whether the process is still there.
    var isAlive: Bool { read("stat") != nil }

    /// The device and the root of the process's own root directory; `nil` if that can't be read.
    var rootMount: String? { read("mountinfo", isWhole: false).flatMap(CallerIdentity.rootMount) }

    /// Reads a file of at most 64 KiB, or the whole lines within the first 16 KiB.
    ///
    /// A process can have as many mounts as it likes, and the kernel writes each of them while this is read. Its root is
    /// among the first, as the mounts below it are mounted later.
    /// - Parameter isWhole: a longer file is refused.
    func read(_ name: String, isWhole: Bool = true) -> String? {
        Self.read(name, from: descriptor, isWhole: isWhole)
    }

    static func read(_ name: String, from directory: Int32, isWhole: Bool) -> String? {
        let file = openat(directory, name, O_RDONLY | O_CLOEXEC)
        guard file >= 0 else { return nil }
        defer { close(file) }
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        while bytes.count < (isWhole ? 64 << 10 : buffer.count) {
            let count = Glibc.read(file, &buffer, buffer.count)
            if count < 0 && errno == EINTR { continue }
            if count < 0 { return nil }
            if count == 0 { return String(decoding: bytes, as: UTF8.self) }
            bytes += buffer[..<count]
        }
        guard !isWhole, let end = bytes.lastIndex(of: UInt8(ascii: "\n")) else { return nil }
        return String(decoding: bytes[..<end], as: UTF8.self)
    }
}
