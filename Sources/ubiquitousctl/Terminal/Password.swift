// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// Reads a password from a file, a terminal that doesn't show it, or a pipe. Never from an argument, which every user
/// of the machine can see.
@BusActor
enum Password {
    /// Returns a file's first line that isn't empty; `-` is standard input.
    static func read(from file: String) throws -> String {
        try text(of: file) { $0.split(whereSeparator: \.isNewline).first.map(String.init) }
    }

    /// Returns the wanted part of a file's text.
    static func text(of file: String, _ part: (String) -> String?) throws -> String {
        let bytes = file == "-" ? try StandardInput.bytes() : try WholeFile.read(file)
        let name = file == "-" ? localized("standard input") : localized("the file \"\(file)\"")
        guard let text = String(validating: bytes, as: UTF8.self), let part = part(text) else {
            throw Failure(.usage, "There is no password in \(name).")
        }
        return part
    }

    /// Asks at the terminal without showing what is typed; without a terminal, reads a line of standard input.
    static func ask(_ prompt: String) async throws -> String {
        guard isatty(STDIN_FILENO) == 1 else { return try read(from: "-") }
        return try await HiddenInput(STDIN_FILENO).line(prompt)
    }
}

/// Reads a line from a terminal without showing what is typed.
@BusActor
private final class HiddenInput {
    private let terminal: Int32
    private let before: termios
    private var sources: [EventSource] = []

    init(_ terminal: Int32) throws {
        self.terminal = terminal
        var settings = termios()
        guard tcgetattr(terminal, &settings) == 0 else {
            throw Failure(
                .usage, "The terminal can't be kept from showing the password.", advice: "Use --password-file.")
        }
        before = settings
    }

    func line(_ prompt: String) async throws -> String {
        // Otherwise the terminal would stay without echo after an interrupted program.
        sources = Interruption.signals.map { number in
            EventLoop.shared.onSignal(number) { [weak self] in
                self?.show()
                Interruption.end(number)
            }
        }
        sources.append(EventLoop.shared.onSignal(SIGTSTP) { [weak self] in self?.stop() })
        // The program may have been stopped without Ctrl-Z, and a shell have set the terminal before it continued.
        sources.append(EventLoop.shared.onSignal(SIGCONT) { [weak self] in self?.ask(prompt) })
        ask(prompt)
        await readable()
        let line = readLine(strippingNewline: true)
        show()
        sources = []
        Interruption.allow()
        Output.write("\n", to: STDERR_FILENO)
        guard let line, !line.isEmpty else { throw Failure(.usage, "Nothing was entered.") }
        return line
    }

    /// Hides the input before it shows the question, because a quick user types as soon as the question appears.
    private func ask(_ prompt: String) {
        hide()
        Output.write("\r\(prompt)", to: STDERR_FILENO)
    }

    /// Stops the program as Ctrl-Z does, and restores the terminal for the shell.
    private func stop() {
        show()
        Interruption.stop()
    }

    /// Waits until a line can be read.
    private func readable() async {
        await withCheckedContinuation { continuation in
            var waiting: CheckedContinuation<Void, Never>? = continuation
            sources.append(
                EventLoop.shared.onReadable(terminal) {
                    waiting?.resume()
                    waiting = nil
                })
        }
    }

    private func hide() {
        var hidden = before
        hidden.c_lflag &= ~tcflag_t(ECHO)
        tcsetattr(terminal, TCSAFLUSH, &hidden)
    }

    private func show() {
        var shown = before
        tcsetattr(terminal, TCSAFLUSH, &shown)
    }
}
