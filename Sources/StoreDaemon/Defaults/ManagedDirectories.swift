// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Files
internal import Glibc
internal import Logging
internal import ManagedDefaults
internal import Replication
internal import SDBus

/// The directories of managed settings, read again when one of them changes.
///
/// If a file becomes invalid, its last valid version stays in force until the file is removed or the service restarts.
/// A typing mistake must not lift what an administrator has forced.
@BusActor
final class ManagedDirectories {
    private var directories: WatchedDirectories?
    private let paths: [String]
    var logger: Logger
    /// The files that were valid when they were last read, by path.
    private var valid: [String: ManagedFile] = [:]
    private var groups = GroupNames()

    /// The settings in force.
    private(set) var settings = ManagedSettings()
    /// Which files and directories are refused or can't be read, in sentences.
    private var problems: [String] = []
    /// What of the files doesn't apply, in sentences.
    var warnings: [String] {
        problems + groups.missing.sorted(by: { $0.key < $1.key }).map { Self.warning(ofGroup: $0.key, $0.value) }
    }
    /// Called with the former settings when the settings in force have changed.
    var onChange: ((_ former: ManagedSettings) -> Void)?

    init(_ paths: [String], logger: Logger) {
        (self.paths, self.logger) = (paths, logger)
        directories = WatchedDirectories(paths) { [weak self] in self?.read() }
        read()
    }

    /// Reads all directories again.
    func read() {
        directories?.watch()
        problems = []
        var files: [(path: String, file: ManagedFile)] = []
        for path in InstalledManifests.files(in: paths, unreadable: namesKept).sorted(by: Self.isBefore) {
            if let file = read(path) { files.append((path, file)) }
        }
        for problem in problems { logger.error("\(problem)") }
        valid = Dictionary(files.map { ($0.path, $0.file) }, uniquingKeysWith: { $1 })
        let next = ManagedSettings(files)
        if next == settings { return }
        let former = settings
        settings = next
        onChange?(former)
        groups.look(up: next.groupNames) { [weak self] in self?.groupsFound(before: $0, missing: $1) }
    }

    /// Returns the names of the valid files in a directory that can't be read any more.
    private func namesKept(in directory: String, _ reason: SystemError) -> [String] {
        problems.append(
            """
            The managed settings in \(directory) can't be read, so what is there doesn't apply, except what was read \
            before: \(reason).
            """)
        return valid.keys.filter { $0.hasPrefix(directory + "/") }.map { String(Self.name($0)) }
    }

    private func groupsFound(before: Set<String>, missing: [String: String]) {
        for (name, reason) in missing.sorted(by: { $0.key < $1.key }) {
            logger.warning("\(Self.warning(ofGroup: name, reason))")
        }
        if groups.known == before { return }
        // It is known only now to whom the settings for groups apply.
        onChange?(ManagedSettings(settings.files.filter { $0.file.groups == nil }))
    }

    private static func warning(ofGroup name: String, _ reason: String) -> String {
        """
        Managed settings name the group \(name), which \(reason). It is looked up again each minute; until then they hold \
        for nobody in it.
        """
    }

    /// Whether a file comes before another: they take precedence by name, whatever their directory.
    private static func isBefore(_ one: String, _ other: String) -> Bool {
        name(one) < name(other)
    }

    private static func name(_ path: String) -> Substring { path.split(separator: "/").last ?? "" }

    private func read(_ path: String) -> ManagedFile? {
        do {
            let bytes = try ManifestFile.read(path, trusting: geteuid(), maximumSize: ManagedFile.maximumSize)
            return bytes.isEmpty ? nil : try ManagedFile(propertyList: bytes)
        } catch {
            let former = valid[path]
            let rest = former == nil ? "it is left out" : "it stays in force as it was"
            problems.append("The managed settings in \(path) are refused, and \(rest): \(error).")
            return former
        }
    }

    // MARK: Users

    /// Returns a caller as managed settings identify users.
    func managedUser(named name: String?, groups ids: [UInt32]) -> ManagedUser {
        ManagedUser(name: name, groups: groups.names(of: ids))
    }
}

/// The ids of the groups that files name. A directory service may take long to return them.
@BusActor
private final class GroupNames {
    private var numbers: [String: UInt32] = [:]
    private var retry: EventSource?
    /// A thread of its own, because it may wait for half a minute, again and again.
    private let thread = WorkThread(WorkPool(threads: 1))

    /// The names that the files have now. A lookup of others is over.
    private var wanted: Set<String> = []

    /// Returns the names of the groups with these ids, as far as files name them.
    func names(of ids: [UInt32]) -> Set<String> {
        if numbers.isEmpty { return [] }
        return Set(numbers.filter { ids.contains($0.value) }.keys)
    }

    /// The names whose ids are known.
    var known: Set<String> { Set(numbers.keys) }
    /// The names that were reported as missing, with the reasons.
    private(set) var missing: [String: String] = [:]

    /// Looks up unknown names on another thread, and those that aren't found again each minute.
    ///
    /// - Parameter done: called with the names that were known before, and those newly missing with the reason.
    func look(
        up names: Set<String>, done: @escaping @BusActor (_ before: Set<String>, _ missing: [String: String]) -> Void
    ) {
        wanted = names
        retry = nil
        missing = missing.filter { names.contains($0.key) }
        let before = known
        numbers = numbers.filter { names.contains($0.key) }
        let unknown = names.subtracting(numbers.keys).sorted()
        if unknown.isEmpty { return }
        EventLoop.task { [self] in
            let (found, absent) = await thread.result { Self.numbers(of: unknown) }
            guard names == wanted else { return }
            numbers.merge(found) { $1 }
            let news = absent.filter { missing[$0.key] == nil }
            missing = absent
            done(before, news)
            if absent.isEmpty { return }
            retry = EventLoop.shared.after(.seconds(60), accuracy: .seconds(5)) { [weak self] in
                self?.look(up: names, done: done)
            }
        }
    }

    /// Returns the ids of groups, and why others have none.
    private nonisolated static func numbers(
        of names: [String]
    ) -> (found: [String: UInt32], absent: [String: String]) {
        var (found, absent): ([String: UInt32], [String: String]) = ([:], [:])
        for name in names {
            switch number(of: name) {
            case .success(let number?): found[name] = number
            case .success(nil): absent[name] = "is not known"
            case .failure(let error): absent[name] = "can't be looked up (\(error))"
            }
        }
        return (found, absent)
    }

    /// The most memory for a group with its members' names, in bytes: those of a million.
    private nonisolated static let largest = 32 << 20

    private nonisolated static func number(of name: String) -> Result<UInt32?, SystemError> {
        var size = 64 << 10
        while true {
            var entry = group()
            var result: UnsafeMutablePointer<group>?
            var buffer = [CChar](repeating: 0, count: size)
            let code = getgrnam_r(name, &entry, &buffer, size, &result)
            if code == 0, result != nil { return .success(entry.gr_gid) }
            size *= 2
            if code == ERANGE, size <= largest { continue }
            return UserEntry.absenceCodes.contains(code) ? .success(nil) : .failure(SystemError(code))
        }
    }
}
