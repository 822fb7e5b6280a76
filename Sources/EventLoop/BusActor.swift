// SPDX-License-Identifier: Apache-2.0

/// A global actor whose executor is the process's ``EventLoop``: everything of libsystemd belongs to it.
///
/// libsystemd's objects belong to one thread, their reference counts included. Code isolated to this actor runs on that
/// thread, between two dispatches of the loop.
@globalActor
public actor BusActor {
    /// The one instance.
    public static let shared = BusActor()

    private init() {}

    /// The event loop of this process.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        EventLoop.shared.asUnownedSerialExecutor()
    }

    /// Runs `body` at once, as code of this actor; a program error unless the caller is on the loop's thread.
    ///
    /// This is how callbacks of libsystemd come in: without a hop and without a task.
    ///
    /// - Throws: what `body` throws.
    @inlinable
    @inline(__always)
    public static func assumeIsolated<T: Sendable>(_ body: @BusActor () throws -> T) rethrows -> T {
        EventLoop.shared.checkIsolated()
        typealias Unisolated = () throws -> T
        // The way of MainActor.assumeIsolated: isolation has no part in how a synchronous function is called, and
        // that this is its thread has just been checked.
        return try withoutActuallyEscaping(body) { try unsafeBitCast($0, to: Unisolated.self)() }
    }

    /// Runs `body` at once with what a C library of the loop's thread lends to a callback, as code of this actor.
    ///
    /// - Parameter body: best captures nothing: then a callback allocates nothing.
    /// - Throws: what `body` throws.
    @inlinable
    @inline(__always)
    package static func assumeIsolated<Lent, T, Failure: Error>(
        lending lent: Lent, _ body: @escaping @BusActor (Lent) throws(Failure) -> T
    ) throws(Failure) -> T {
        EventLoop.shared.checkIsolated()
        typealias Unisolated = (Lent) throws(Failure) -> T
        return try unsafeBitCast(body, to: Unisolated.self)(lent)
    }
}
