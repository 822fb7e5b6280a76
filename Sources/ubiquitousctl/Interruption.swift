// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// The signals that end the program: at once, as there is nothing to be undone, but for the moments named here.
///
/// The event loop blocks them when it starts, for services that want to be told.
enum Interruption {
    static let signals = [SIGINT, SIGTERM, SIGHUP]

    /// Lets them through, on this thread.
    static func allow() { change(SIG_UNBLOCK) }

    /// Has them wait until `body` is done, which has to be soon.
    static func deferring<Result>(_ body: () throws -> Result) rethrows -> Result {
        change(SIG_BLOCK)
        defer { allow() }
        return try body()
    }

    /// Ends the program as a signal does: a shell sees which one it was.
    static func end(_ number: Int32) -> Never {
        signal(number, SIG_DFL)
        allow()
        raise(number)
        exit(128 + number)
    }

    /// Stops the program as Ctrl-Z does, until it is continued. Without a shell that could continue it the system
    /// ignores this.
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
