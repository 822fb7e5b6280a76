// SPDX-License-Identifier: Apache-2.0

// What kind of caller a process is. The user id, which the bus guarantees, is the only security boundary. Within a
// user, this tells sandboxed apps from other programs, and refuses callers that it can't classify.
//
// A service that isn't root can read little more of another user's process than /proc/PID/cgroup and mountinfo, so
// these decide: a flatpak is in a scope named for it, and a process with a root of its own that isn't known is refused.
// A process can escape this only by being replaced under its pid, which shows because /proc/PID is opened only once.

internal import Glibc
internal import PlainText
internal import Synchronization

/// A caller's kind and app id.
struct CallerIdentity: Equatable, Sendable {
    enum Engine: String, Sendable {
        /// An ordinary program of the user.
        case host
        case flatpak
        /// An unknown sandbox, or a process that could not be examined.
        case unknown
    }

    let engine: Engine
    /// The app id by the sandbox or the session's systemd, without characters that can't be sent or shown, because
    /// whoever may make control groups has chosen it. For an ordinary program it is only a hint.
    let applicationIdentifier: String

    /// - Parameter applicationIdentifier: any text; 255 bytes of it are kept, as many as a file's name may have.
    init(engine: Engine, applicationIdentifier: String) {
        self.engine = engine
        self.applicationIdentifier = applicationIdentifier.cleaned(atMost: 255)
    }

    static let unknown = CallerIdentity(engine: .unknown, applicationIdentifier: "")

    /// Root's processes are not examined further.
    static let root = CallerIdentity(engine: .host, applicationIdentifier: "")

    /// Examines a process. This may wait for locks of the kernel that other processes hold.
    static func of(pid: Int32?) -> CallerIdentity {
        guard let pid, let process = ProcessDirectory(pid: "\(pid)"), let cgroup = process.read("cgroup"),
            let root = process.rootMount, let hostRoot = hostRoot(), process.isAlive
        else { return .unknown }
        return identity(cgroup: cgroup, root: root, hostRoot: hostRoot)
    }

    /// The root of process 1, which doesn't change while the machine is up; `nil` if it can't be read now.
    private static func hostRoot() -> String? {
        knownHostRoot.withLock { root in
            if root == nil { root = ProcessDirectory(pid: "1")?.rootMount }
            return root
        }
    }

    private static let knownHostRoot = Mutex<String?>(nil)

    /// Classifies a process by what `/proc` says about it and about process 1.
    static func identity(cgroup: String, root: String, hostRoot: String) -> CallerIdentity {
        let unit = unitName(cgroup)
        if let app = flatpakApplication(unit) { return CallerIdentity(engine: .flatpak, applicationIdentifier: app) }
        // A snap's root need not differ from the host's, so its control group decides.
        if cgroup.contains("/snap.") || root != hostRoot { return .unknown }
        return CallerIdentity(engine: .host, applicationIdentifier: hostApplication(unit) ?? "")
    }

    /// Returns the device and the root of what is mounted on `/`, from the last line for it.
    static func rootMount(_ mountinfo: String) -> String? {
        for line in mountinfo.utf8.split(separator: UInt8(ascii: "\n")).reversed() {
            let fields = line.split(separator: UInt8(ascii: " "), maxSplits: 5).map { Substring($0) }
            if fields.count > 4, fields[4] == "/" { return "\(fields[2]) \(fields[3])" }
        }
        return nil
    }

    /// Returns the last part of the process's path in systemd's hierarchy.
    static func unitName(_ cgroup: String) -> String {
        let lines = cgroup.split(separator: "\n")
        let line =
            lines.first { $0.hasPrefix("0::") && $0 != "0::/" } ?? lines.first { $0.contains(":name=systemd:") } ?? ""
        return line.split(separator: "/").last.map(String.init) ?? ""
    }

    /// Returns the app of a scope that flatpak made: `app-flatpak-ID-INSTANCE.scope`.
    static func flatpakApplication(_ unit: String) -> String? {
        let prefix = "app-flatpak-"
        guard unit.hasPrefix(prefix), unit.hasSuffix(".scope") else { return nil }
        return applicationName(unit.dropFirst(prefix.count).dropLast(6), separator: "-").map(unescaped)
    }

    /// Returns the app of a unit that a desktop made: `app[-LAUNCHER]-ID-RANDOM.scope` or
    /// `app[-LAUNCHER]-ID[@RANDOM].service`. See systemd's documentation of desktop environments.
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

    /// Removes the launcher. An app id has no unescaped `-`, so the launcher is what precedes one.
    private static func withoutLauncher(_ text: String) -> String {
        unescaped(text.split(separator: "-").last.map(String.init) ?? text)
    }

    /// Of an app id's characters, a unit's name escapes only `-`: systemd.unit(5).
    private static func unescaped(_ name: String) -> String { name.replacing("\\x2d", with: "-") }
}

/// `/proc/PID`, opened once, so that it stays with the process and never becomes another one's.
struct ProcessDirectory: ~Copyable {
    private let descriptor: Int32

    init?(pid: String) {
        descriptor = open("/proc/" + pid, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    /// Whether the process still exists.
    var isAlive: Bool { read("stat") != nil }

    /// The device and the root of the process's root directory; `nil` if they can't be read.
    var rootMount: String? { read("mountinfo", isWhole: false).flatMap(CallerIdentity.rootMount) }

    /// Reads a file of at most 64 KiB, or the whole lines within the first 16 KiB.
    ///
    /// A process can have any number of mounts, and the kernel writes them all while the file is read. The root is
    /// among the first, because the mounts below it are mounted later.
    /// - Parameter isWhole: whether to refuse a longer file.
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
