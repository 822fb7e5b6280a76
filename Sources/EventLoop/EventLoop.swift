// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc
internal import Synchronization

/// The event loop of this process, and the executor of ``BusActor``.
///
/// There is one, and it runs on one thread: the one that calls ``runOnThisThread(handling:_:)``, as in a service, or else a
/// thread of its own that starts at the first use.
///
/// It waits, in no order, for jobs of the actor (a queue, and an eventfd that is written when the queue was empty) and
/// for sources: those made by the methods of this class, and the bus's sockets.
@usableFromInline
package final class EventLoop: SerialExecutor, TaskExecutor {
    /// The loop of this process.
    @usableFromInline
    package static let shared = EventLoop()

    private struct Queue {
        var jobs: [UnownedJob] = []
        var hasThread = false
    }

    private let queue = Mutex(Queue())
    private let wakeup: Int32
    /// The loop's thread; 0 while there is none.
    private let thread = Atomic<UInt>(0)
    /// The sd_event. It is created before the first job of the actor.
    @BusActor package private(set) var event: OpaquePointer?
    @BusActor private var wakeupSource: OpaquePointer?

    private init() {
        wakeup = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
        precondition(wakeup >= 0, "no file descriptor is left for the event loop")
    }

    /// Runs the loop on the calling thread, which should be the main thread of a service, until ``exit(_:)``.
    ///
    /// Traps if the loop is already running. An error that `main` throws is written to standard error and ends the loop
    /// with 1.
    ///
    /// - Parameters:
    ///   - signals: the signals that `main` handles with ``onSignal(_:_:)``. They are blocked first, which is reliable
    ///     only if no thread has started before. All others do what they do in any program.
    ///   - main: the first code on the loop. If it returns a number, the loop ends as with ``exit(_:)``.
    /// - Returns: the code passed to ``exit(_:)``.
    ///
    /// The corresponding C function is ``sd_event_loop``.
    package static func runOnThisThread(
        handling signals: [Int32] = [], _ main: @escaping @BusActor @Sendable () async throws -> Int32?
    ) -> Int32 {
        var blocked = sigset_t()
        sigemptyset(&blocked)
        for signal in signals { sigaddset(&blocked, signal) }
        pthread_sigmask(SIG_BLOCK, &blocked, nil)
        let isFirst = shared.queue.withLock { queue in
            defer { queue.hasThread = true }
            return !queue.hasThread
        }
        precondition(isFirst, "the event loop has a thread already: run it before anything uses BusActor")
        Task(executorPreference: shared) { await shared.perform(main) }
        return shared.run()
    }

    @BusActor
    private func perform(_ main: @BusActor @Sendable () async throws -> Int32?) async {
        do {
            if let code = try await main() { exit(code) }
        } catch {
            let line = "\(error)\n"
            write(STDERR_FILENO, line, line.utf8.count)
            exit(1)
        }
    }

    /// Ends the loop after the current dispatch. Waiting jobs are abandoned, and new ones never run.
    ///
    /// The corresponding C function is ``sd_event_exit``.
    ///
    /// - Parameter code: the result of ``runOnThisThread(handling:_:)``.
    @BusActor
    package func exit(_ code: Int32) {
        sd_event_exit(event, code)
    }

    /// Regularly notifies the service manager that this loop is alive, if it asks for that (`WatchdogSec=`).
    ///
    /// - Returns: whether the service manager asks for it.
    ///
    /// The corresponding C function is ``sd_event_set_watchdog``.
    @BusActor
    @discardableResult
    package func enableWatchdog() -> Bool {
        sd_event_set_watchdog(event, 1) > 0
    }

    /// Microseconds of CLOCK_MONOTONIC.
    package static var now: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
    }

    /// Microseconds of the processor's time that the calling thread has had.
    package static var processorTime: UInt64 {
        var time = timespec()
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
        return UInt64(time.tv_sec) * 1_000_000 + UInt64(time.tv_nsec) / 1000
    }

    // MARK: Executor

    /// Queues a job of the actor. May be called from any thread.
    @usableFromInline
    package func enqueue(_ job: consuming ExecutorJob) {
        let job = UnownedJob(job)
        let (wasEmpty, needsThread) = queue.withLock { queue in
            defer {
                queue.jobs.append(job)
                queue.hasThread = true
            }
            return (queue.jobs.isEmpty, !queue.hasThread)
        }
        if wasEmpty { eventfd_write(wakeup, 1) }
        if needsThread { startThread() }
    }

    /// Starts a task of the actor that prefers the loop's thread.
    ///
    /// A task without this preference resumes on the process's thread pool before it returns to the actor. That costs
    /// two thread switches per reply, and a pool that wakes up every second from then on.
    @discardableResult
    package static func task<Value: Sendable>(
        _ body: sending @escaping @BusActor () async -> Value
    ) -> Task<Value, Never> {
        Task(executorPreference: shared, operation: body)
    }

    /// Starts a task of the actor, and runs it up to its first wait before this returns.
    @BusActor
    @discardableResult
    package static func immediateTask<Value: Sendable>(
        _ body: sending @escaping @BusActor () async -> Value
    ) -> Task<Value, Never> {
        Task.immediate(executorPreference: shared, operation: body)
    }

    /// Traps unless the caller is on the loop's thread.
    @usableFromInline
    package func checkIsolated() {
        precondition(isOnThread, "this belongs to the event loop's thread (BusActor)")
    }

    /// Whether the caller is on the loop's thread.
    @usableFromInline
    package func isIsolatingCurrentContext() -> Bool? {
        isOnThread
    }

    private var isOnThread: Bool {
        // Relaxed is enough: if a thread finds its own number, it has written it itself.
        thread.load(ordering: .relaxed) == UInt(pthread_self())
    }

    @BusActor
    private func runJobs() {
        var count: eventfd_t = 0
        eventfd_read(wakeup, &count)
        let jobs = queue.withLock { queue in
            defer { queue.jobs.removeAll() }
            return queue.jobs
        }
        let end = Self.now + Self.longestRun
        for (index, job) in jobs.enumerated() {
            job.runSynchronously(isolatedTo: asUnownedSerialExecutor(), taskExecutor: asUnownedTaskExecutor())
            let rest = jobs[(index + 1)...]
            if rest.isEmpty || Self.now < end { continue }
            queue.withLock { $0.jobs.insert(contentsOf: rest, at: 0) }
            eventfd_write(wakeup, 1)
            return
        }
    }

    /// How long jobs run before the loop looks for events again, in microseconds. One event may have resumed thousands.
    private static let longestRun: UInt64 = 1000

    // MARK: Thread

    private func startThread() {
        var thread = pthread_t()
        let result = pthread_create(
            &thread,
            nil,
            { _ in
                // A library's thread must not receive the program's signals.
                var signals = sigset_t()
                sigfillset(&signals)
                pthread_sigmask(SIG_BLOCK, &signals, nil)
                _ = EventLoop.shared.run()
                return nil
            },
            nil
        )
        precondition(result == 0, "the event loop's thread can't be started")
        pthread_detach(thread)
    }

    private func run() -> Int32 {
        thread.store(UInt(pthread_self()), ordering: .relaxed)
        return sd_event_loop(BusActor.assumeIsolated(lending: self) { $0.makeEvent() })
    }

    @BusActor
    private func makeEvent() -> OpaquePointer? {
        let result = sd_event_new(&event)
        require(result, "sd_event_new")
        sd_event_add_io(
            event,
            &wakeupSource,
            wakeup,
            EPOLLIN.rawValue,
            { _, _, _, _ in
                BusActor.assumeIsolated { EventLoop.shared.runJobs() }
                return 0
            },
            nil
        )
        return event
    }
}
