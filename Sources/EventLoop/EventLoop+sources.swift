// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// What a file descriptor is ready for, or should be waited for.
package struct Readiness: OptionSet, Sendable {
    /// The bits of epoll.
    package let rawValue: UInt32

    /// Makes a value from epoll's bits.
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Reading won't block (EPOLLIN).
    package static let read = Readiness(rawValue: EPOLLIN.rawValue)
    /// Writing won't block (EPOLLOUT).
    package static let write = Readiness(rawValue: EPOLLOUT.rawValue)
    /// An error is pending (EPOLLERR). Always reported.
    package static let error = Readiness(rawValue: EPOLLERR.rawValue)
    /// The other end has hung up (EPOLLHUP). Always reported.
    package static let hangup = Readiness(rawValue: EPOLLHUP.rawValue)
}

/// The events to watch for in a directory.
package struct DirectoryEvents: OptionSet, Sendable {
    /// The bits of inotify.
    package let rawValue: UInt32

    /// Makes a value from inotify's bits.
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A file appears (IN_CREATE); it may have no contents yet.
    package static let created = DirectoryEvents(rawValue: UInt32(IN_CREATE))
    /// A file is removed (IN_DELETE).
    package static let removed = DirectoryEvents(rawValue: UInt32(IN_DELETE))
    /// A file is moved in, as in an atomic replacement, or out (IN_MOVED_TO, IN_MOVED_FROM).
    package static let moved = DirectoryEvents(rawValue: UInt32(IN_MOVED_TO | IN_MOVED_FROM))
    /// A file that was open for writing is closed (IN_CLOSE_WRITE).
    package static let written = DirectoryEvents(rawValue: UInt32(IN_CLOSE_WRITE))
    /// Metadata of a file change (IN_ATTRIB).
    package static let attributes = DirectoryEvents(rawValue: UInt32(IN_ATTRIB))
    /// The directory itself is removed or moved away (IN_DELETE_SELF, IN_MOVE_SELF); reported without a name.
    package static let gone = DirectoryEvents(rawValue: UInt32(IN_DELETE_SELF | IN_MOVE_SELF))
    /// Everything that can change the contents of the directory's files.
    package static let contents: DirectoryEvents = [.created, .removed, .moved, .written, .gone]
}

/// The loop doesn't keep these sources: hold the returned source as long as it should wait.
extension EventLoop {
    /// Returns after a while, during which others have the thread.
    @BusActor
    package static func pause(_ duration: Duration) async {
        var timer: EventSource?
        await withCheckedContinuation { continuation in timer = shared.after(duration) { continuation.resume() } }
        withExtendedLifetime(timer) {}
    }

    /// Calls `action` once, after `delay`.
    ///
    /// - Parameters:
    ///   - delay: from now, on CLOCK_MONOTONIC. A negative delay is zero, which means the next turn of the loop.
    ///   - accuracy: how much later `action` may run, so that wakeups can be shared; at least one microsecond.
    ///
    /// The corresponding C function is ``sd_event_add_time``.
    @BusActor
    package func after(
        _ delay: Duration,
        accuracy: Duration = .milliseconds(1),
        _ action: @escaping @BusActor () -> Void
    ) -> EventSource {
        let source = EventSource(isOneShot: true) { _, _ in action() }
        // Not sd_event_add_time_relative, which counts from the start of the loop's turn; that may be long ago.
        let (time, overflow) = Self.now.addingReportingOverflow(delay.microseconds)
        let result = source.attach {
            // An accuracy of 0 would mean sd-event's default, 250 ms.
            sd_event_add_time(
                event,
                &$0,
                CLOCK_MONOTONIC,
                overflow ? .max : time,
                max(1, accuracy.microseconds),
                { _, _, userdata in EventSource.fire(userdata) },
                $1
            )
        }
        require(result, "sd_event_add_time")
        return source
    }

    /// Calls `action` at each Unix signal of this number, and blocks it in the loop's thread from now on.
    ///
    /// The signal must be blocked in every other thread too; ``runOnThisThread(handling:_:)`` does that for those that it
    /// gets. Traps if the number already has a source.
    ///
    /// The corresponding C function is ``sd_event_add_signal``.
    @BusActor
    package func onSignal(_ number: Int32, _ action: @escaping @BusActor () -> Void) -> EventSource {
        let source = EventSource { _, _ in action() }
        let result = source.attach {
            sd_event_add_signal(
                event,
                &$0,
                number | Int32(SD_EVENT_SIGNAL_PROCMASK),
                { _, _, userdata in EventSource.fire(userdata) },
                $1
            )
        }
        require(result, "sd_event_add_signal")
        return source
    }

    /// Calls `action` whenever `fd` can be read, or is at its end.
    ///
    /// The caller keeps `fd`, which must stay open while the source lives.
    @BusActor
    package func onReadable(_ fd: Int32, _ action: @escaping @BusActor () -> Void) -> EventSource {
        onReady(fd, for: .read) { _ in action() }
    }

    /// Calls `action` whenever `fd` is ready for what was requested; level-triggered.
    ///
    /// The caller keeps `fd`, which must stay open while the source lives. Traps if it can't be polled.
    ///
    /// The corresponding C function is ``sd_event_add_io``.
    @BusActor
    package func onReady(
        _ fd: Int32,
        for readiness: Readiness,
        _ action: @escaping @BusActor (Readiness) -> Void
    ) -> EventSource {
        let source = EventSource { _, readiness in action(readiness) }
        let result = source.attach {
            sd_event_add_io(
                event,
                &$0,
                fd,
                readiness.rawValue,
                { _, _, events, userdata in EventSource.fire(userdata, readiness: events) },
                $1
            )
        }
        require(result, "sd_event_add_io")
        return source
    }

    /// Calls `action` with the name of each file that changes in a directory; with `nil` if the directory itself
    /// changes, or if events were lost and everything may have changed.
    ///
    /// - Throws: ``EventLoopError`` if the directory is missing or can't be watched.
    ///
    /// The corresponding C function is ``sd_event_add_inotify``.
    @BusActor
    package func watch(
        directory path: String,
        mask: DirectoryEvents = .contents,
        _ action: @escaping @BusActor (_ name: String?) -> Void
    ) throws(EventLoopError) -> EventSource {
        let source = EventSource { name, _ in action(name) }
        let result = source.attach {
            sd_event_add_inotify(
                event,
                &$0,
                path,
                mask.rawValue | UInt32(IN_ONLYDIR),
                { _, event, userdata in
                    EventSource.fire(userdata, name: event.flatMap(fileName))
                },
                $1
            )
        }
        try check(result, "watching a directory")
        return source
    }

    /// Calls `action` when routes change, which happens when this machine joins or leaves a network; once for several
    /// changes together.
    ///
    /// - Throws: ``EventLoopError`` if the kernel doesn't report networks to this process, as in some sandboxes.
    @BusActor
    package func watchRoutes(_ action: @escaping @BusActor () -> Void) throws(EventLoopError) -> EventSource {
        let descriptor = shim_route_socket()
        try check(descriptor, "listening to routes")
        let source = EventSource { _, _ in action() }
        let result = source.attach {
            sd_event_add_io(
                event,
                &$0,
                descriptor,
                Readiness.read.rawValue,
                { _, descriptor, _, userdata in
                    passOver(descriptor)
                    return EventSource.fire(userdata)
                },
                $1
            )
        }
        if result >= 0 { source.own() } else { close(descriptor) }
        try check(result, "listening to routes")
        return source
    }
}

/// Reads and discards everything from a socket; only its arrival matters.
private func passOver(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 1 << 10, alignment: 1) { buffer in
        // Data that doesn't fit is dropped; lost messages say as much as received ones.
        while recv(descriptor, buffer.baseAddress, buffer.count, 0) >= 0 || errno == ENOBUFS || errno == EINTR {}
    }
}

/// The name after the fixed part of an inotify_event: a flexible array, which Swift doesn't import.
private func fileName(_ event: UnsafePointer<inotify_event>) -> String? {
    guard event.pointee.len > 0 else { return nil }
    let name = UnsafeRawPointer(event).advanced(by: MemoryLayout<inotify_event>.size)
    return String(cString: name.assumingMemoryBound(to: CChar.self))
}

extension Duration {
    /// Whole microseconds, clamped to the range of `UInt64`.
    package var microseconds: UInt64 {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = components
        let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000)
        let (sum, carry) = whole.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000_000))
        return overflow || carry ? .max : sum
    }
}
