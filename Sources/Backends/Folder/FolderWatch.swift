// SPDX-License-Identifier: Apache-2.0

// Watches the folders that others write to, with inotify(7). One thread waits for all watches.
//
// This process announces its own changes in advance, and the watch ignores them; otherwise the service would read back
// what it wrote.
//
// The kernel keeps events until they are read, and counts their memory as the service's. So the first change of another
// process ends the watch, until the next check begins it again; the check comes before the folder is listed, so nothing
// is missed (docs/decisions/0168).

internal import Files
internal import Glibc
internal import Synchronization

/// Reports that other processes have changed something in a folder since it was last checked.
final class FolderWatch: Sendable {
    private struct State {
        var isClosed = false
        /// The inotify instance; -1 while there is none.
        var inotify: Int32 = -1
        /// The watched folders, by the kernel's watch descriptor.
        var folders: [Int32: String] = [:]
        /// The number of our own events to expect, by folder and name.
        var expected: [String: Int] = [:]
        /// How often a change has ended the watch.
        var endings = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
        var nextListener = 0
    }

    private let state = Mutex(State())
    private let makeInstance: @Sendable () -> Int32

    /// The maximum number of reads in a row, of 16 KiB each. If as many don't reach the end, somebody writes without a
    /// pause.
    private static let mostReads = 16
    private static let largestEvent = MemoryLayout<inotify_event>.size + 256

    private static let events = UInt32(
        IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR
    )
    /// The folder was replaced or removed.
    private static let upheavals = UInt32(IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF)

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

    /// Watches a folder, unless it is watched already. Call it before each look at the folder: a change ends the watch, and
    /// a folder may be removed and created again.
    /// - Returns: whether changes in it will be reported.
    func watch(_ folder: String, _ directory: borrowing FileDescriptor) -> Bool {
        guard let inotify = instance() else { return false }
        let path = "/proc/self/fd/\(directory.number)"
        let endings = state.withLock { $0.endings }
        // Not under the lock, which the thread of all watches takes: a mount may block for long. The next listing sees
        // what happens before the folder is recorded.
        let number = inotify_add_watch(inotify, path, Self.events)
        guard number >= 0 else { return false }
        return state.withLock { state in
            // What has ended the watch meanwhile is reported, and the next check watches again.
            if state.isClosed || state.endings != endings {
                inotify_rm_watch(inotify, number)
                return !state.isClosed
            }
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

    /// A stream of hints, until the watch is closed. It begins with one if a change has ended the watch.
    func hints() -> AsyncStream<Void> {
        let (stream, listener) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let number: Int? = state.withLock { state in
            if state.isClosed { return nil }
            state.nextListener += 1
            state.listeners[state.nextListener] = listener
            if state.endings > 0, state.folders.isEmpty { listener.yield() }
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
        end()
        if watched >= 0 { FolderPoller.shared.remove(watched) }
        for listener in listeners { listener.finish() }
    }

    // MARK: Events

    /// Reports a change.
    func tell() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Reads waiting events. One that is not our own ends the watch, and so do more than can be read in a row.
    /// - Returns: whether the watch has ended.
    func readEvents() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        let inotify = state.withLock { $0.inotify }
        for _ in 0..<Self.mostReads {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(inotify, $0.baseAddress, $0.count) }
            if count <= 0 { return false }
            if buffer.withUnsafeBytes({ hasForeign($0.prefix(count)) }) { return end() }
            if count <= buffer.count - Self.largestEvent { return false }
        }
        return end()
    }

    /// Watches nothing until the next check. What is still in the queue is then skipped.
    /// - Returns: whether something was watched.
    @discardableResult
    private func end() -> Bool {
        state.withLock { state in
            if state.folders.isEmpty { return false }
            for number in state.folders.keys { inotify_rm_watch(state.inotify, number) }
            (state.folders, state.expected) = ([:], [:])
            state.endings += 1
            return true
        }
    }

    private func hasForeign(_ bytes: Slice<UnsafeRawBufferPointer>) -> Bool {
        let bytes = UnsafeRawBufferPointer(rebasing: bytes)
        var offset = 0
        while offset + MemoryLayout<inotify_event>.size <= bytes.count {
            let event = bytes.loadUnaligned(fromByteOffset: offset, as: inotify_event.self)
            let start = offset + MemoryLayout<inotify_event>.size
            offset = start + Int(event.len)
            let name = bytes[start..<min(offset, bytes.count)].prefix { $0 != 0 }
            if isForeign(event, name) { return true }
        }
        return false
    }

    private func isForeign(_ event: inotify_event, _ name: Slice<UnsafeRawBufferPointer>) -> Bool {
        if event.mask & UInt32(IN_Q_OVERFLOW) != 0 { return true }
        // What was in the queue when the watch ended counts no more.
        guard let folder = state.withLock({ $0.folders[event.wd] }) else { return false }
        if event.mask & Self.upheavals != 0 { return true }
        // Names with a dot are unfinished files, ours and those of sync tools.
        if name.first == UInt8(ascii: ".") { return false }
        return !isExpected("\(folder)/\(String(decoding: name, as: UTF8.self))")
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
