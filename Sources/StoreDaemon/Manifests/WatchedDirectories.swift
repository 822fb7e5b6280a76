// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// Directories whose files are read again when one of them changes.
@BusActor
final class WatchedDirectories {
    private let paths: [String]
    private let onChange: @BusActor () -> Void
    private var watches: [EventSource] = []
    private var quiet: EventSource?

    /// - Parameters:
    ///   - paths: the directories, which need not exist.
    ///   - onChange: called when something has changed and nothing more has for 200 ms: a package's files come
    ///   one after the other, and are read once.
    init(_ paths: [String], onChange: @escaping @BusActor () -> Void) {
        (self.paths, self.onChange) = (paths, onChange)
    }

    /// Watches each directory, or where it isn't there the nearest one above it, which it will come to be in. Call it at
    /// each reading, since directories come and go.
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

    /// Whether a change has not been told yet. It won't be: the caller reads the files now.
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
