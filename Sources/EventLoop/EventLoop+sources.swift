// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

/// What a file descriptor is ready for, or what to wait for.
public struct Readiness: OptionSet, Sendable {
    /// The bits of epoll.
    public let rawValue: UInt32

    /// Bits of epoll as they are.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// Reading won't block (EPOLLIN).
    public static let read = Readiness(rawValue: EPOLLIN.rawValue)
    /// Writing won't block (EPOLLOUT).
    public static let write = Readiness(rawValue: EPOLLOUT.rawValue)
    /// Told unasked: an error is pending (EPOLLERR).
    public static let error = Readiness(rawValue: EPOLLERR.rawValue)
    /// Told unasked: the other end has hung up (EPOLLHUP).
    public static let hangup = Readiness(rawValue: EPOLLHUP.rawValue)
}

/// What is watched for in a directory.
public struct DirectoryEvents: OptionSet, Sendable {
    /// The bits of inotify.
    public let rawValue: UInt32

    /// Bits of inotify as they are.
    public init(rawValue: UInt32) { self.rawValue = rawValue }

    /// A file appears (IN_CREATE); it may have no contents yet.
    public static let created = DirectoryEvents(rawValue: UInt32(IN_CREATE))
    /// A file is removed (IN_DELETE).
    public static let removed = DirectoryEvents(rawValue: UInt32(IN_DELETE))
    /// A file is moved in, as in an atomic replacement, or out (IN_MOVED_TO, IN_MOVED_FROM).
    public static let moved = DirectoryEvents(rawValue: UInt32(IN_MOVED_TO | IN_MOVED_FROM))
    /// A file that was open for writing is closed (IN_CLOSE_WRITE).
    public static let written = DirectoryEvents(rawValue: UInt32(IN_CLOSE_WRITE))
    /// Metadata of a file change (IN_ATTRIB).
    public static let attributes = DirectoryEvents(rawValue: UInt32(IN_ATTRIB))
    /// The directory itself is removed or moved away (IN_DELETE_SELF, IN_MOVE_SELF); told with no name.
    public static let gone = DirectoryEvents(rawValue: UInt32(IN_DELETE_SELF | IN_MOVE_SELF))
    /// Everything that can change what is in the directory's files.
    public static let contents: DirectoryEvents = [.created, .removed, .moved, .written, .gone]
}

/// All of these keep nothing: the source that is returned must be held as long as it shall wait.
extension EventLoop {
    /// Calls `action` once, after `delay`.
    ///
    /// - Parameters:
    ///   - delay: from now, on CLOCK_MONOTONIC; what is negative is zero, which means the next turn of the loop.
    ///   - accuracy: how much later is still good, so that wake-ups can be shared; at least a microsecond.
    ///
    /// The corresponding C function is ``sd_event_add_time``.
    @BusActor
    public func after(
        _ delay: Duration,
        accuracy: Duration = .milliseconds(1),
        _ action: @escaping @BusActor () -> Void
    ) -> EventSource {
        let source = EventSource(isOneShot: true) { _, _ in action() }
        // Not sd_event_add_time_relative: it counts from the beginning of the loop's turn, which may be long ago.
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

    /// Calls `action` at each signal of this number, which is blocked in the loop's thread from now on.
    ///
    /// It must be blocked in every other thread, too: ``runOnThisThread(_:)`` sees to that for the usual ones. A
    /// program error if the number has a source already.
    ///
    /// The corresponding C function is ``sd_event_add_signal``.
    @BusActor
    public func onSignal(_ number: Int32, _ action: @escaping @BusActor () -> Void) -> EventSource {
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

    /// Calls `action` as often as `fd` can be read, or has ended.
    ///
    /// `fd` stays the caller's, and must stay open while the source lives.
    @BusActor
    public func onReadable(_ fd: Int32, _ action: @escaping @BusActor () -> Void) -> EventSource {
        onReady(fd, for: .read) { _ in action() }
    }

    /// Calls `action` as often as `fd` is ready for what is asked; level-triggered.
    ///
    /// `fd` stays the caller's, and must stay open while the source lives. A program error if it can't be polled.
    ///
    /// The corresponding C function is ``sd_event_add_io``.
    @BusActor
    public func onReady(
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

    /// Calls `action` with the name of each file in a directory that changes; with `nil` when the directory itself does,
    /// or when events were lost and everything may have changed.
    ///
    /// - Throws: ``EventLoopError`` if the directory isn't there or can't be watched.
    ///
    /// The corresponding C function is ``sd_event_add_inotify``.
    @BusActor
    public func watch(
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

    /// Calls `action` when routes come or go, which is when this machine gets to a network, or leaves one; once for many
    /// at a time.
    ///
    /// - Throws: ``EventLoopError`` where the kernel tells this process nothing of networks, as in some sandboxes.
    @BusActor
    public func watchRoutes(_ action: @escaping @BusActor () -> Void) throws(EventLoopError) -> EventSource {
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

/// Reads all that a socket has, which says no more than that it is there.
private func passOver(_ descriptor: Int32) {
    withUnsafeTemporaryAllocation(byteCount: 1 << 10, alignment: 1) { buffer in
        // What does not fit is dropped, and what was lost tells as much as what was not.
        while recv(descriptor, buffer.baseAddress, buffer.count, 0) >= 0 || errno == ENOBUFS || errno == EINTR {}
    }
}

/// The name after the fixed part of an inotify_event, which Swift doesn't see: it is a flexible array.
private func fileName(_ event: UnsafePointer<inotify_event>) -> String? {
    guard event.pointee.len > 0 else { return nil }
    let name = UnsafeRawPointer(event).advanced(by: MemoryLayout<inotify_event>.size)
    return String(cString: name.assumingMemoryBound(to: CChar.self))
}

extension Duration {
    /// Whole microseconds, from 0 up to what fits.
    package var microseconds: UInt64 {
        guard self > .zero else { return 0 }
        let (seconds, attoseconds) = components
        let (whole, overflow) = UInt64(seconds).multipliedReportingOverflow(by: 1_000_000)
        let (sum, carry) = whole.addingReportingOverflow(UInt64(attoseconds / 1_000_000_000_000))
        return overflow || carry ? .max : sum
    }
}
