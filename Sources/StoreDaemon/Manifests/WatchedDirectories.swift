// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// Directories that are watched, because their files are read again when one changes.
@BusActor
final class WatchedDirectories {
    private let paths: [String]
    private let onChange: @BusActor () -> Void
    private var watches: [EventSource] = []
    private var quiet: EventSource?

    /// - Parameters:
    ///   - paths: the directories, which need not exist.
    ///   - onChange: called when nothing has changed for 200 ms after a change, because a package's files arrive one by
    ///     one.
    init(_ paths: [String], onChange: @escaping @BusActor () -> Void) {
        (self.paths, self.onChange) = (paths, onChange)
    }

    /// Watches each directory, or the nearest existing one above it, in which it would appear. Call it with each
    /// reading, because directories come and go.
    func watch() {
        watches = Set(paths.map(Self.nearestExisting)).compactMap { place in
            try? EventLoop.shared.watch(directory: place) { [weak self] _ in self?.changed() }
        }
    }

    private func changed() {
        quiet = EventLoop.shared.after(.milliseconds(200)) { [weak self] in
            self?.quiet = nil
            self?.onChange()
        }
    }

    /// Whether a change has not been reported yet. It won't be, because the caller reads the files now.
    func takeChange() -> Bool {
        defer { quiet = nil }
        return quiet != nil
    }

    private static func nearestExisting(_ path: String) -> String {
        var path = path
        var status = stat()
        while path.count > 1, stat(path, &status) != 0 || status.st_mode & S_IFMT != S_IFDIR {
            path = String(path[..<(path.lastIndex(of: "/") ?? path.startIndex)])
        }
        return path.isEmpty ? "/" : path
    }
}
