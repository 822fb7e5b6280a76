// SPDX-License-Identifier: Apache-2.0

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

    /// Watches each directory, or the nearest one above it that can be watched, in which it appears or becomes readable.
    /// Call it with each reading, because directories come and go.
    func watch() {
        var watches: [String: EventSource] = [:]
        for path in paths {
            for place in sequence(first: path, next: Self.parent(of:)) {
                if watches[place] != nil { break }
                watches[place] = try? EventLoop.shared.watch(directory: place, mask: [.contents, .attributes]) {
                    [weak self] _ in self?.changed()
                }
                if watches[place] != nil { break }
            }
        }
        self.watches = Array(watches.values)
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

    private static func parent(of path: String) -> String? {
        guard path != "/", let slash = path.lastIndex(of: "/") else { return nil }
        return slash == path.startIndex ? "/" : String(path[..<slash])
    }
}
