// SPDX-License-Identifier: Apache-2.0

// Watches the folders that others write to, with inotify(7), on a thread of its own that does nothing but wait.
//
// What this process does there is announced before it is done, and is then not told: a hint for our own writing
// would make us read what we wrote.

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
    private let wakeup: (read: Int32, write: Int32)

    /// No hint follows another sooner.
    private static let interval: Int32 = 1000

    private static let events = UInt32(
        IN_MOVED_TO | IN_MOVED_FROM | IN_CLOSE_WRITE | IN_CREATE | IN_DELETE | IN_DELETE_SELF | IN_MOVE_SELF
            | IN_ONLYDIR
    )
    /// The folder itself is another one now, or there is none, or events were lost.
    private static let upheavals = UInt32(IN_IGNORED | IN_UNMOUNT | IN_DELETE_SELF | IN_MOVE_SELF | IN_Q_OVERFLOW)

    /// A watch, or `nil` where the system has none left.
    init?() {
        var pipe: [Int32] = [-1, -1]
        let inotify = inotify_init1(Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK))
        guard inotify >= 0 else { return nil }
        guard Glibc.pipe(&pipe) == 0 else {
            Glibc.close(inotify)
            return nil
        }
        for end in pipe { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
        self.inotify = inotify
        wakeup = (pipe[0], pipe[1])
        guard startThread() else {
            for number in [inotify] + pipe { Glibc.close(number) }
            return nil
        }
    }

    /// Watches a folder, unless it is watched already: to be called anew from time to time, as a folder may go
    /// and come back as another one.
    /// - Returns: whether changes in it will be told.
    func watch(_ folder: String, _ directory: borrowing FileDescriptor) -> Bool {
        let path = "/proc/self/fd/\(directory.number)"
        return state.withLock { state in
            if state.isClosed { return false }
            let number = inotify_add_watch(inotify, path, Self.events)
            guard number >= 0 else { return false }
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

    /// Ends the thread and all hints.
    func close() {
        let listeners = state.withLock { state in
            defer { state.listeners = [:] }
            if !state.isClosed { Glibc.write(wakeup.write, [0], 1) }
            state.isClosed = true
            return state.listeners.values
        }
        for listener in listeners { listener.finish() }
    }

    // MARK: Thread

    private func startThread() -> Bool {
        var thread = pthread_t()
        let watch = Unmanaged.passRetained(self)
        let result = pthread_create(
            &thread,
            nil,
            { watch in
                // A thread of a library takes no signal from the program it is in.
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                if let watch { Unmanaged<FolderWatch>.fromOpaque(watch).takeRetainedValue().run() }
                return nil
            },
            watch.toOpaque()
        )
        if result != 0 { watch.release() }
        if result == 0 { pthread_detach(thread) }
        return result == 0
    }

    private func run() {
        while wait(on: [inotify, wakeup.read], -1) {
            guard readEvents() else { continue }
            tell()
            guard wait(on: [wakeup.read], Self.interval) else { break }
        }
        state.withLock { _ in
            for number in [inotify, wakeup.read, wakeup.write] { Glibc.close(number) }
        }
    }

    /// Waits until there is something to read or the time is over.
    /// - Returns: whether to go on.
    private func wait(on numbers: [Int32], _ milliseconds: Int32) -> Bool {
        var descriptors = numbers.map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
        poll(&descriptors, nfds_t(descriptors.count), milliseconds)
        return state.withLock { !$0.isClosed }
    }

    private func tell() {
        for listener in state.withLock({ Array($0.listeners.values) }) { listener.yield() }
    }

    /// Reads the events that wait.
    /// - Returns: whether one of them is somebody else's.
    private func readEvents() -> Bool {
        var buffer = [UInt8](repeating: 0, count: 16 << 10)
        var isForeign = false
        while true {
            let count = buffer.withUnsafeMutableBytes { Glibc.read(inotify, $0.baseAddress, $0.count) }
            if count <= 0 { return isForeign }
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
