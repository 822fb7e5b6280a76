// SPDX-License-Identifier: Apache-2.0

// Watches the folders that others write to, with inotify(7). One thread waits for all of them.
//
// What this process does there is announced before it is done, and is then not told: a hint for our own writing
// would make us read what we wrote.

internal import Files
internal import Glibc
internal import Synchronization

/// Tells when somebody else changes something in a folder.
final class FolderWatch: Sendable {
    private struct State {
        var isClosed = false
        /// The folders that are watched, by the number that the kernel gives a watch.
        var folders: [Int32: String] = [:]
        /// How many events are our own, by folder and name.
        var expected: [String: Int] = [:]
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextListener = 0
    }

    private let state = Mutex(State())
    private let inotify: Int32

    /// Of 16 KiB each.
    private static let mostReads = 64

    private static let events = UInt32(
        IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR
    )
    /// The folder itself is another one now, or there is none, or events were lost.
    private static let upheavals = UInt32(IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW)

    /// A watch, or `nil` where the system has none left. It is there until it is closed.
    init?() {
        inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard inotify >= 0 else { return nil }
        guard FolderPoller.shared.add(self, inotify) else { return nil }
    }

    deinit { Glibc.close(inotify) }

    /// Watches a folder, unless it is watched already: to be called anew from time to time, as a folder may go
    /// and come back as another one.
    /// - Returns: whether changes in it will be told.
    func watch(_ folder: String, _ directory: borrowing FileDescriptor) -> Bool {
        let path = "/proc/self/fd/\(directory.number)"
        // Not under the lock, which the thread of all watches takes: a mount may think about it for long. What happens
        // before the folder is noted is seen by the listing that follows.
        let number = inotify_add_watch(inotify, path, Self.events)
        guard number >= 0 else { return false }
        return state.withLock { state in
            if state.isClosed { return false }
            for (other, name) in state.folders where name == folder && other != number {
                inotify_rm_watch(inotify, other)
                state.folders[other] = nil
            }
            // What was announced for a folder that is gone will not come.
            if state.folders.updateValue(folder, forKey: number) == nil {
                state.expected = state.expected.filter { !$0.key.hasPrefix(folder + "/") }
            }
            return true
        }
    }

    /// Does what leads to one event that is nobody else's.
    func expecting(_ name: String, _ body: () throws(SystemError) -> Void) throws(SystemError) {
        let folder = name.split(separator: "/").first.map(String.init)
        let isWatched = state.withLock { state in
            let isWatched = state.folders.values.contains { $0 == folder }
            if isWatched { state.expected[name, default: 0] += 1 }
            return isWatched
        }
        do { try body() } catch {
            if isWatched { _ = isExpected(name) }
            throw error
        }
    }

    /// A stream of hints, until the watch is closed.
    func hints() -> AsyncStream<Void> {
        let (stream, listener) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            if state.isClosed { return nil }
            state.nextListener += 1
            state.listeners[state.nextListener] = listener
            return state.nextListener
        }
        guard let number else {
            listener.finish()
            return stream
        }
        listener.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[number] = nil }
        }
        return stream
    }

    /// Ends the watch and all hints.
    func close() {
        let (isFirst, listeners) = state.withLock { state in
            defer { (state.isClosed, state.listeners) = (true, [:]) }
            return (!state.isClosed, state.listeners.values)
        }
        if isFirst { FolderPoller.shared.remove(inotify) }
        for listener in listeners { listener.finish() }
    }

    // MARK: Events

    /// Says that something has changed.
    func tell() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Reads the events that wait.
    /// - Returns: whether one of them is somebody else's.
    func readEvents() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var isForeign = false
        // Who writes without a pause is read on a second later: by then some may be lost, which is a hint as well.
        for _ in 0..<Self.mostReads {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(inotify, $0.baseAddress, $0.count) }
            if count <= 0 { break }
            buffer.withUnsafeBytes { bytes in
                var offset = 0
                while offset + MemoryLayout<inotify_event>.size <= count {
                    let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
                    let start = offset + MemoryLayout<inotify_event>.size
                    offset = start + Int(event.len)
                    let name = bytes[start..<min(offset, count)].prefix { $0 != 0 }
                    if self.isForeign(event, String(decoding: name, as: UTF8.self)) { isForeign = true }
                }
            }
        }
        return isForeign
    }

    private func isForeign(_ event: inotify_event, _ name: String) -> Bool {
        if event.mask & Self.upheavals != 0 {
            state.withLock { state in
                if event.mask & UInt32(IN_IGNORED) != 0 { state.folders[event.wd] = nil }
            }
            return true
        }
        // Names with a dot are files that are not whole yet, ours and those of sync tools.
        if name.hasPrefix(".") { return false }
        guard let folder = state.withLock({ $0.folders[event.wd] }) else { return false }
        return !isExpected("\(folder)/\(name)")
    }

    /// Takes one event off those that are expected.
    private func isExpected(_ name: String) -> Bool {
        state.withLock { state in
            guard let count = state.expected[name] else { return false }
            state.expected[name] = count > 1 ? count - 1 : nil
            return true
        }
    }
}
