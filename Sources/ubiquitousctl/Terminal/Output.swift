// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import PlainText
internal import PropertyList
internal import PropertyListFiles
internal import SDBus
internal import Synchronization

/// The program's output: results go to standard output, everything else to standard error.
enum Output {
    private struct State {
        /// Why standard output can't be written to, as in `errno`; `nil` if it can.
        var error: Int32?
        var hasChanged = false
    }

    private static let state = Mutex(State())

    /// Prints a line of a result, unbuffered.
    static func print(_ line: String) {
        write(line + "\n", to: STDOUT_FILENO)
    }

    /// Prints parts of a result separated by two spaces; on several lines if the terminal is too narrow.
    static func print(lines parts: [String]) {
        var lines: [(text: String, width: Int)] = []
        let width = Style.width(of: STDOUT_FILENO) ?? .max
        for part in parts {
            let columns = Style.columns(part)
            if let last = lines.last, last.width + 2 + columns <= width {
                lines[lines.count - 1] = ("\(last.text)  \(part)", last.width + 2 + columns)
            } else {
                let indentation = lines.isEmpty ? 0 : 3
                lines.append((String(repeating: " ", count: indentation) + part, indentation + columns))
            }
        }
        for line in lines { print(line.text) }
    }

    /// Prints a result as JSON, on one line.
    static func print(json value: Value) {
        print(JSONWriter.write(value))
    }

    /// Writes a result's bytes as they are.
    static func write(bytes: [UInt8]) {
        bytes.withUnsafeBytes { write($0, to: STDOUT_FILENO) }
    }

    /// Prints an error: what was wrong on the first line, and what to do on the following lines.
    static func complain(_ text: String) {
        let style = Style(for: STDERR_FILENO)
        let lines = text.split(separator: "\n", maxSplits: 1)
        var message = style.red("ubiquitousctl:") + " \(printable(lines.first ?? ""))\n"
        if lines.count > 1 { message += "\(printable(lines[1]))\n" }
        write(message, to: STDERR_FILENO)
    }

    /// Prints a remark that isn't an error.
    static func remark(_ sentence: Sentence) {
        write("ubiquitousctl: \(printable(sentence.text))\n", to: STDERR_FILENO)
    }

    /// Ends the program, as writing would, once the reader of standard output has closed the pipe.
    /// - Returns: what has to be held meanwhile; `nil` if standard output is no pipe.
    @BusActor
    static func endWithReader() -> EventSource? {
        var status = stat()
        guard fstat(STDOUT_FILENO, &status) == 0, [S_IFIFO, S_IFSOCK].contains(status.st_mode & S_IFMT) else {
            return nil
        }
        return EventLoop.shared.onReady(STDOUT_FILENO, for: []) { _ in Interruption.end(SIGPIPE) }
    }

    /// Returns the outcome after everything was printed: a failure if some of it could not be written.
    static func finish() -> Outcome {
        let state = state.withLock { $0 }
        guard let error = state.error else { return .done }
        let reason = String(cString: strerror(error))
        complain(
            state.hasChanged
                ? localized("The change was made, but standard output can't be written to: \(reason)")
                : localized("Standard output can't be written to: \(reason)"))
        return .refused
    }

    /// Notes that the command has made its change.
    static func noteChange() { state.withLock { $0.hasChanged = true } }

    /// Ends the program if standard output can't be written to: a command that only prints has no reason to continue.
    static func endIfBroken() {
        let outcome = finish()
        if outcome != .done { exit(outcome.rawValue) }
    }

    static func write(_ text: String, to descriptor: Int32) {
        var text = text
        text.withUTF8 { write(UnsafeRawBufferPointer($0), to: descriptor) }
    }

    private static func write(_ bytes: UnsafeRawBufferPointer, to descriptor: Int32) {
        var rest = bytes
        while !rest.isEmpty {
            let count = Glibc.write(descriptor, rest.baseAddress, rest.count)
            if count < 0 && errno == EINTR { continue }
            guard count > 0 else {
                // The reader has closed the pipe, as in `| head`.
                if descriptor == STDOUT_FILENO && errno == EPIPE { Interruption.end(SIGPIPE) }
                let error = errno
                if descriptor == STDOUT_FILENO { state.withLock { $0.error = error } }
                return
            }
            rest = UnsafeRawBufferPointer(rebasing: rest[count...])
        }
    }

    /// Returns text that may contain foreign text, without what would control a terminal.
    private static func printable(_ text: Substring) -> String { printable(String(text)) }

    /// Returns a name in quotes for use in a sentence; of a very long name, only its beginning.
    static func quoted(_ name: String) -> String { "\"\(shortened(name))\"" }

    /// Returns a name for use in a sentence; of a very long one, only its beginning.
    static func shortened(_ name: String) -> String {
        let isLong = name.unicodeScalars.count > 128
        return isLong ? String(String.UnicodeScalarView(name.unicodeScalars.prefix(40))) + "…" : name
    }

    /// Returns a word as one types it in a shell, because others may have chosen it, and users paste commands.
    static func shellWord(_ word: String) -> String {
        let isPlain = word.utf8.allSatisfy { byte in
            let scalar = UnicodeScalar(byte)
            return ("0"..."9").contains(scalar) || ("a"..."z").contains(scalar) || ("A"..."Z").contains(scalar)
                || "@%+=:,./_-".unicodeScalars.contains(scalar)
        }
        return isPlain && !word.isEmpty ? word : "'\(word.replacing("'", with: "'\\''"))'"
    }

    /// Returns the text for use within a line, also without newlines.
    static func printableWord(_ text: String) -> String { printable(text).replacing("\n", with: "\u{FFFD}") }

    static func printable(_ text: String, atMost length: Int = .max) -> String {
        text.split(separator: "\n", omittingEmptySubsequences: false).map { String($0).cleaned(atMost: length) }
            .joined(separator: "\n")
    }
}
