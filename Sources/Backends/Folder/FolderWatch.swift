// SPDX-License-Identifier: Apache-2.0

// Watches the folders that others write to, with inotify(7). One thread waits for all watches.
//
// This process announces its own changes in advance, and the watch ignores them; otherwise the service would read back
// what it wrote.

internal import Files
internal import Glibc
internal import Synchronization

/// Reports changes that other processes make in a folder.
final class FolderWatch: Sendable {
    private struct State {
        var isClosed = false
        /// The inotify instance; -1 while there is none.
        var inotify: Int32 = -1
        /// The watched folders, by the kernel's watch descriptor.
        var folders: [Int32: String] = [:]
        /// The number of our own events to expect, by folder and name.
        var expected: [String: Int] = [:]
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextListener = 0
    }

    private let state = Mutex(State())
    private let makeInstance: @Sendable () -> Int32

    /// The maximum number of reads in a row, of 16 KiB each.
    private static let mostReads = 64

    private static let events = UInt32(
        IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR
    )
    /// The folder was replaced or removed, or events were lost.
    private static let upheavals = UInt32(IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW)

    /// Makes a watch, which lasts until it is closed.
    /// - Parameter makeInstance: makes an inotify instance, of which the system may have none left.
    init(
        _ makeInstance: @escaping @Sendable () -> Int32 = { inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)) }
    ) { self.makeInstance = makeInstance }

    deinit {
        let inotify = state.withLock { $0.inotify }
        if inotify >= 0 { Glibc.close(inotify) }
    }

    /// Returns the inotify instance; `nil` if there can't be one now. Only one thread at a time calls this.
    private func instance() -> Int32? {
        let (present, isClosed) = state.withLock { ($0.inotify, $0.isClosed) }
        if isClosed || present >= 0 { return isClosed ? nil : present }
        let made = makeInstance()
        if made < 0 { return nil }
        guard FolderPoller.shared.add(self, made) else {
            Glibc.close(made)
            return nil
        }
        let wasClosed = state.withLock { state in
            state.inotify = made
            return state.isClosed
        }
        if wasClosed { FolderPoller.shared.remove(made) }
        return wasClosed ? nil : made
    }

    /// Watches a folder, unless it is watched already. Call it again from time to time, because a folder may be removed
    /// and created again.
    /// - Returns: whether changes in it will be reported.
    func watch(_ folder: String, _ directory: borrowing FileDescriptor) -> Bool {
        guard let inotify = instance() else { return false }
        let path = "/proc/self/fd/\(directory.number)"
        // Not under the lock, which the thread of all watches takes: a mount may block for long. The next listing sees
        // what happens before the folder is recorded.
        let number = inotify_add_watch(inotify, path, Self.events)
        guard number >= 0 else { return false }
        return state.withLock { state in
            if state.isClosed { return false }
            for (other, name) in state.folders where name == folder && other != number {
                inotify_rm_watch(inotify, other)
                state.folders[other] = nil
            }
            // Events announced for a removed folder will never come.
            if state.folders.updateValue(folder, forKey: number) == nil {
                state.expected = state.expected.filter { !$0.key.hasPrefix(folder + "/") }
            }
            return true
        }
    }

    /// Runs an operation of our own that causes one event.
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
        let (watched, listeners) = state.withLock { state in
            defer { (state.isClosed, state.listeners) = (true, [:]) }
            return (state.isClosed ? -1 : state.inotify, state.listeners.values)
        }
        if watched >= 0 { FolderPoller.shared.remove(watched) }
        for listener in listeners { listener.finish() }
    }

    // MARK: Events

    /// Reports a change.
    func tell() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Reads the waiting events.
    /// - Returns: whether one of them is not our own.
    func readEvents() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var isForeign = false
        let inotify = state.withLock { $0.inotify }
        // If another process writes without pause, reading continues a second later. Events may be lost by then, which
        // counts as a hint too.
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
                // Some of our own may be among those that were dropped.
                if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { state.expected = [:] }
            }
            return true
        }
        // Names with a dot are unfinished files, ours and those of sync tools.
        if name.hasPrefix(".") { return false }
        guard let folder = state.withLock({ $0.folders[event.wd] }) else { return false }
        return !isExpected("\(folder)/\(name)")
    }

    /// Removes one event from the expected ones.
    private func isExpected(_ name: String) -> Bool {
        state.withLock { state in
            guard let count = state.expected[name] else { return false }
            state.expected[name] = count > 1 ? count - 1 : nil
            return true
        }
    }
}
