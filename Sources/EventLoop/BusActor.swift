// SPDX-License-Identifier: Apache-2.0

/// A global actor whose executor is the process's ``EventLoop``. All objects of libsystemd belong to it.
///
/// libsystemd's objects, including their reference counts, belong to one thread. Code isolated to this actor runs on
/// that thread, between two dispatches of the loop.
@globalActor
public actor BusActor {
    /// The one instance.
    public static let shared = BusActor()

    private init() {}

    /// The event loop of this process.
    public nonisolated var unownedExecutor: UnownedSerialExecutor {
        EventLoop.shared.asUnownedSerialExecutor()
    }

    /// Runs `body` at once, isolated to this actor. Traps unless the caller is on the loop's thread.
    ///
    /// libsystemd's callbacks enter the actor this way, without a hop or a task.
    ///
    /// - Throws: what `body` throws.
    @inlinable
    @inline(__always)
    package static func assumeIsolated<T: Sendable>(_ body: @BusActor () throws -> T) rethrows -> T {
        EventLoop.shared.checkIsolated()
        typealias Unisolated = () throws -> T
        // As in MainActor.assumeIsolated: isolation doesn't affect how a synchronous function is called, and the thread
        // has just been checked.
        return try withoutActuallyEscaping(body) { try unsafeBitCast($0, to: Unisolated.self)() }
    }

    /// Runs `body` at once, isolated to this actor, with an argument that a C library lends to a callback.
    ///
    /// - Parameter body: a function rather than a closure, if there are many calls: a closure's captures are allocated,
    ///   and each isolated closure makes the runtime check again whether it runs on the right executor.
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
