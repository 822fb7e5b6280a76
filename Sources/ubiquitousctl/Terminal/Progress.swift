// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// Tells the user that something is under way, once it has taken a second.
@BusActor
final class Progress {
    private let what: String
    private let isTerminal = isatty(STDERR_FILENO) == 1
    private var timer: EventSource?
    private var seconds = 0

    /// Runs `body`. After a second, writes `what` to standard error: with the elapsed time on a terminal, and once
    /// elsewhere.
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

    /// Clears the progress from the terminal's line, before the program's last message.
    static func clear() {
        if isatty(STDERR_FILENO) == 1 { Output.write("\r\u{1B}[K", to: STDERR_FILENO) }
    }

    private func end() {
        timer = nil
        // The next output begins where this line was.
        if seconds > 0 { Self.clear() }
    }
}
