// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import SDBus

/// Reads a password from a file, a terminal that doesn't show it, or a pipe. Never from an argument, which every user
/// of the machine can see.
@BusActor
enum Password {
    /// Returns a file's first line that isn't empty; `-` is standard input.
    static func read(from file: String) throws -> String {
        try text(of: file) {
            $0.split(whereSeparator: \.isNewline).first.map(String.init)
        } orElse: {
            Failure(.usage, "There is no password in \($0).")
        }
    }

    /// Returns the wanted part of a file's text.
    /// - Parameter failure: makes the error for a file, given what it is called, that has no such part.
    static func text(
        of file: String, _ part: (String) -> String?, orElse failure: (_ name: String) -> Failure
    ) throws -> String {
        let bytes = file == "-" ? try StandardInput.bytes() : try WholeFile.read(file)
        let name = file == "-" ? localized("standard input") : localized("the file \"\(file)\"")
        guard bytes.count <= longestText else {
            throw Failure(.usage, "There are \(bytes.count) bytes in \(name), which is too much. Name the right file.")
        }
        guard let text = String(validating: bytes, as: UTF8.self) else {
            throw Failure(.usage, "What is in \(name) is not UTF-8 text.")
        }
        guard let part = part(text) else { throw failure(name) }
        return part
    }

    /// The most bytes of a text with a password or a phrase.
    private static let longestText = 64 << 10

    /// Asks at the terminal without showing what is typed; without a terminal, reads a line of standard input.
    static func ask(_ prompt: String) async throws -> String {
        guard isatty(STDIN_FILENO) == 1 else { return try read(from: "-") }
        return try await HiddenInput(STDIN_FILENO).lines(prompt) { _ in nil }
    }
}

/// Reads lines from a terminal without showing what is typed.
@BusActor
final class HiddenInput {
    private let terminal: Int32
    private let before: termios
    private var sources: [EventSource] = []
    private var question = ""

    init(_ terminal: Int32) throws {
        self.terminal = terminal
        var settings = termios()
        guard tcgetattr(terminal, &settings) == 0 else {
            throw Failure(
                .usage, "The terminal can't be kept from showing the password.", advice: "Use --password-file.")
        }
        before = settings
    }

    /// Returns what is typed in answer to a question.
    /// - Parameter further: returns the question for the next line, which may be empty to end the answer, given the
    ///   lines so far; `nil` if they are all.
    func lines(_ prompt: String, _ further: (String) -> String?) async throws -> String {
        question = prompt
        // Otherwise the terminal would stay without echo after an interrupted program.
        sources = Interruption.signals.map { number in
            EventLoop.shared.onSignal(number) { [weak self] in
                self?.show()
                Interruption.end(number)
            }
        }
        sources.append(EventLoop.shared.onSignal(SIGTSTP) { [weak self] in self?.stop() })
        // The program may have been stopped without Ctrl-Z, and a shell have set the terminal before it continued.
        sources.append(EventLoop.shared.onSignal(SIGCONT) { [weak self] in self?.ask() })
        ask()
        var lines: [String] = []
        while let line = await line(), !line.isEmpty {
            lines.append(line)
            guard let next = further(lines.joined(separator: "\n")) else { break }
            question = next
            // Pasted text may have arrived already, so nothing may be flushed.
            Output.write(next, to: STDERR_FILENO)
        }
        show()
        sources = []
        Interruption.allow()
        guard !lines.isEmpty else { throw Failure(.usage, "Nothing was entered.") }
        return lines.joined(separator: "\n")
    }

    private func line() async -> String? {
        await readable()
        defer { Output.write("\n", to: STDERR_FILENO) }
        return readLine(strippingNewline: true)
    }

    /// Hides the input before it shows the question, because a quick user types as soon as the question appears.
    private func ask() {
        hide()
        Output.write("\r\(question)", to: STDERR_FILENO)
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
        sources.removeLast()
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
