// SPDX-License-Identifier: Apache-2.0

internal import AppManifest
internal import Glibc
internal import Logging
internal import ManagedDefaults
internal import Replication
internal import SDBus

/// The directories where administrators put managed settings, read again when one of them changes.
///
/// A file that becomes invalid stays in force as it was, until it is removed or the service starts anew: a typing
/// mistake must not set people free of what is forced.
@BusActor
final class ManagedDirectories {
    private var directories: WatchedDirectories?
    private let paths: [String]
    var logger: Logger
    /// The files that were right when they were read last, by path.
    private var valid: [String: ManagedFile] = [:]
    private var groups = GroupNames()

    /// What is in force.
    private(set) var settings = ManagedSettings()
    /// Called with what was in force after other settings have come into force.
    var onChange: ((_ former: ManagedSettings) -> Void)?

    init(_ paths: [String], logger: Logger) {
        (self.paths, self.logger) = (paths, logger)
        directories = WatchedDirectories(paths) { [weak self] in self?.read() }
        read()
    }

    /// Reads all directories anew.
    func read() {
        directories?.watch()
        var files: [(path: String, file: ManagedFile)] = []
        for path in InstalledManifests.files(in: paths).sorted(by: Self.isBefore) {
            if let file = read(path) { files.append((path, file)) }
        }
        valid = Dictionary(files.map { ($0.path, $0.file) }, uniquingKeysWith: { $1 })
        let next = ManagedSettings(files)
        if next == settings { return }
        let former = settings
        settings = next
        onChange?(former)
        groups.look(up: next.groupNames) { [weak self] in self?.groupsFound(before: $0, missing: $1) }
    }

    private func groupsFound(before: Set<String>, missing: [String]) {
        for name in missing {
            logger.warning(
                """
                Managed settings name the group \(name), which is not known. It is looked up again each minute; until \
                then they hold for nobody in it.
                """)
        }
        if groups.known == before { return }
        // Of whom these settings hold is known only now.
        onChange?(ManagedSettings(settings.files.filter { $0.file.groups == nil }))
    }

    /// The order in which files win: by name, whatever their directory.
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
            logger.error("The managed settings in \(path) are refused, and \(rest): \(error)")
            return former
        }
    }

    // MARK: People

    /// A caller, as the files know people.
    func person(named name: String?, groups ids: [UInt32]) -> ManagedPerson {
        ManagedPerson(name: name, groups: groups.names(of: ids))
    }
}

/// The numbers of the groups that files name. A directory service may take long to say them.
@BusActor
private final class GroupNames {
    private var numbers: [String: UInt32] = [:]
    private var retry: EventSource?
    /// Not one of those that all tasks share: it may wait for half a minute, again and again.
    private let thread = WorkThread(WorkPool(threads: 1))

    /// The names of the groups with these numbers, as far as files name them.
    func names(of ids: [UInt32]) -> Set<String> {
        if numbers.isEmpty { return [] }
        return Set(numbers.filter { ids.contains($0.value) }.keys)
    }

    /// The names whose numbers are known.
    var known: Set<String> { Set(numbers.keys) }
    /// Names that were said to be missing.
    private var missing: Set<String> = []

    /// Looks names up that are not known yet, off this thread, and those that don't exist again each minute.
    ///
    /// - Parameter done: told of the names that were known before, and of those that are newly found to be missing.
    func look(up names: Set<String>, done: @escaping @BusActor (_ before: Set<String>, _ missing: [String]) -> Void) {
        retry = nil
        missing.formIntersection(names)
        let before = known
        numbers = numbers.filter { names.contains($0.key) }
        let unknown = names.subtracting(numbers.keys).sorted()
        if unknown.isEmpty { return }
        EventLoop.task { [self] in
            guard let found = try? await thread.result(of: { Self.numbers(of: unknown) }) else { return }
            numbers.merge(found) { $1 }
            let absent = unknown.filter { found[$0] == nil }
            let news = absent.filter { !missing.contains($0) }
            missing = Set(absent)
            done(before, news)
            if absent.isEmpty { return }
            retry = EventLoop.shared.after(.seconds(60), accuracy: .seconds(5)) { [weak self] in
                self?.look(up: names, done: done)
            }
        }
    }

    private nonisolated static func numbers(of names: [String]) -> [String: UInt32] {
        var numbers: [String: UInt32] = [:]
        for name in names {
            var entry = group()
            var result: UnsafeMutablePointer<group>?
            var buffer = [CChar](repeating: 0, count: 64 << 10)
            guard getgrnam_r(name, &entry, &buffer, buffer.count, &result) == 0, result != nil else { continue }
            numbers[name] = entry.gr_gid
        }
        return numbers
    }
}
