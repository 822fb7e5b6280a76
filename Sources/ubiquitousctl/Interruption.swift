// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The signals that end the program: at once, because there is nothing to undo, unless they are deferred.
enum Interruption {
    static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// Unblocks the signals on this thread.
    static func allow() { change(SIG_UNBLOCK) }

    /// Defers the signals until `body` is done, which has to be soon.
    static func deferring<Result>(_ body: () throws -> Result) rethrows -> Result {
        change(SIG_BLOCK)
        defer { allow() }
        return try body()
    }

    /// Ends the program by a signal, so that a shell sees which one it was.
    static func end(_ number: Int32) -> Never {
        signal(number, SIG_DFL)
        allow()
        raise(number)
        exit(128 + number)
    }

    /// Stops the program as Ctrl-Z does, until it is continued. The kernel ignores this if there is no shell that could
    /// continue it.
    static func stop() {
        change(SIG_UNBLOCK, [SIGTSTP])
        raise(SIGTSTP)
        change(SIG_BLOCK, [SIGTSTP])
    }

    private static func change(_ how: Int32, _ signals: [Int32] = signals) {
        var set = sigset_t()
        sigemptyset(&set)
        for signal in signals { sigaddset(&set, signal) }
        pthread_sigmask(how, &set, nil)
    }
}
