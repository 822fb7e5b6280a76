// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A thread that waits for the events of all ``FolderWatch``es, and runs while there is at least one.
///
/// Each watch has an inotify instance of its own, so that a flood of events in one folder doesn't lose another's. Between
/// two hints of a watch there is at least a second.
final class FolderPoller: Sendable {
    static let shared = FolderPoller()

    private struct Polled {
        let watch: FolderWatch
        /// The earliest time of its next hint, in milliseconds of CLOCK_MONOTONIC.
        var nextHint = 0
        /// Whether a hint waits for that time.
        var hasHint = false
    }

    private struct State {
        /// The watches by their descriptors, which are open while the watches exist.
        var watches: [Int32: Polled] = [:]
        var isRunning = false
    }

    private let state = Mutex(State())
    /// A pipe to wake the thread when the set of watches changes; -1 if no descriptor was left.
    private let wakeup: (read: Int32, write: Int32)

    /// The minimum time between two hints of a watch, in milliseconds.
    private static let interval = 1000

    private init() {
        var ends: [Int32] = [-1, -1]
        if pipe(&ends) != 0 { ends = [-1, -1] }
        for end in ends where end >= 0 {
            _ = fcntl(end, F_SETFD, FD_CLOEXEC)
            _ = fcntl(end, F_SETFL, O_NONBLOCK)
        }
        wakeup = (ends[0], ends[1])
    }

    /// Waits for the events of a watch.
    /// - Returns: false if no thread can be started.
    func add(_ watch: FolderWatch, _ descriptor: Int32) -> Bool {
        guard wakeup.read >= 0 else { return false }
        let wasRunning = state.withLock { state -> Bool? in
            let wasRunning = state.isRunning
            // The thread waits for the lock.
            guard wasRunning || startThread() else { return nil }
            state.isRunning = true
            state.watches[descriptor] = Polled(watch: watch)
            return wasRunning
        }
        if wasRunning == true { wakeUp() }
        return wasRunning != nil
    }

    /// Forgets a watch.
    func remove(_ descriptor: Int32) {
        let watch = state.withLock { $0.watches.removeValue(forKey: descriptor) }
        if watch != nil { wakeUp() }
    }

    /// A full pipe also wakes the thread.
    private func wakeUp() { _ = write(wakeup.write, [0], 1) }

    // MARK: Thread

    private func startThread() -> Bool {
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { _ in
                // A library's thread must not receive the program's signals.
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                FolderPoller.shared.run()
                return nil
            }, nil)
        if result == 0 { pthread_detach(thread) }
        return result == 0
    }

    private func run() {
        var bytes = [UInt8](repeating: 0, count: 64)
        while let (descriptors, timeout) = next() {
            var events = ([wakeup.read] + descriptors).map { pollfd(fd: $0, events: Int16(POLLIN), revents: 0) }
            poll(&events, nfds_t(events.count), timeout)
            while Glibc.read(wakeup.read, &bytes, bytes.count) > 0 {}
            for event in events.dropFirst() where event.revents != 0 { read(event.fd) }
            tell()
        }
    }

    /// The descriptors to wait for, and for how many milliseconds; `nil` if there are none, which ends the thread.
    private func next() -> ([Int32], Int32)? {
        let now = Self.now
        return state.withLock { state in
            state.isRunning = !state.watches.isEmpty
            guard state.isRunning else { return nil }
            let due = state.watches.values.filter(\.hasHint).map(\.nextHint).min()
            return (Array(state.watches.keys), due.map { Int32(clamping: max(0, $0 - now)) } ?? -1)
        }
    }

    private func read(_ descriptor: Int32) {
        guard let watch = state.withLock({ $0.watches[descriptor]?.watch }), watch.readEvents() else { return }
        state.withLock { state in
            if state.watches[descriptor]?.watch === watch { state.watches[descriptor]?.hasHint = true }
        }
    }

    /// Gives the hints that are due.
    private func tell() {
        let now = Self.now
        let watches = state.withLock { state in
            let due = state.watches.filter { $0.value.hasHint && $0.value.nextHint <= now }
            for (descriptor, polled) in due {
                state.watches[descriptor] = Polled(watch: polled.watch, nextHint: now + Self.interval)
            }
            return due.values.map(\.watch)
        }
        for watch in watches { watch.tell() }
    }

    private static var now: Int {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return time.tv_sec * 1000 + time.tv_nsec / 1_000_000
    }
}
