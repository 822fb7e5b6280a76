// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// Tells a person that something is under way, once it has taken a second.
@BusActor
final class Progress {
    private let what: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var timer: EventSource?
    private var seconds = 0

    /// Runs `body`; after a second standard error says `what` is being done: a terminal with the time that it has taken,
    /// and anything else once.
    static func showing<Result>(_ what: Sentence, _ body: @BusActor () async throws -> Result) async rethrows -> Result
    {
        let progress = Progress(what.text)
        progress.wait()
        defer { progress.end() }
        return try await body()
    }

    private init(_ what: String) { self.what = what }

    private func wait() {
        timer = EventLoop.shared.after(.seconds(1)) { [weak self] in self?.show() }
    }

    private func show() {
        seconds += 1
        if isTerminal {
            Output.write("\r\(what) … \(seconds) s", to: STDERR_FILENO)
            wait()
        } else {
            Output.write("\(what) …\n", to: STDERR_FILENO)
            timer = nil
        }
    }

    /// Has what was said go from a terminal's line, for what is said at the program's end.
    static func clear() {
        if isatty(STDERR_FILENO) == 1 { Output.write("\r\u{1B}[K", to: STDERR_FILENO) }
    }

    private func end() {
        timer = nil
        // The line goes: what comes next begins where it was.
        if seconds > 0 { Self.clear() }
    }
}
