// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import Synchronization

/// A terminal with a program; the test has its keyboard and screen.
public final class PseudoTerminal: Sendable {
    /// The program at the terminal.
    public let program: ChildProcess
    private let descriptor: Int32
    private let shown = Mutex<[UInt8]>([])

    /// TIOCSPTLCK and TIOCGPTN of ioctl_tty(2), macros that Swift doesn't import.
    private static let (setLock, getNumber): (UInt, UInt) = (0x4004_5431, 0x8004_5430)

    /// Starts a program at a terminal of its own.
    ///
    /// - Parameters:
    ///   - arguments: the program and its arguments.
    ///   - environment: the whole environment; `nil` is this process's.
    /// - Throws: ``StartFailure``.
    public init(_ arguments: [String], environment: [String: String]? = nil) throws {
        descriptor = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC | O_NONBLOCK)
        var (number, locked): (Int32, Int32) = (0, 0)
        guard descriptor >= 0, ioctl(descriptor, Self.setLock, &locked) == 0,
            ioctl(descriptor, Self.getNumber, &number) == 0
        else { throw StartFailure(description: "There is no terminal: \(String(cString: strerror(errno)))") }
        program = try ChildProcess(arguments, environment: environment, terminal: "/dev/pts/\(number)")
    }

    deinit { close(descriptor) }

    /// Types at the keyboard; `\u{3}` is Ctrl-C.
    public func type(_ text: String) {
        _ = write(descriptor, text, text.utf8.count)
    }

    /// Everything shown so far, including control sequences.
    public var screen: String {
        shown.withLock { shown in
            var buffer = [UInt8](repeating: 0, count: 4096)
            while case let count = read(descriptor, &buffer, buffer.count), count > 0 { shown += buffer[..<count] }
            return String(decoding: shown, as: UTF8.self)
        }
    }

    /// Waits until the screen shows a text.
    /// - Throws: ``DeadlinePassed``.
    public func shows(_ text: String) async throws {
        try await eventually("the terminal shows \(text)") { screen.contains(text) }
    }

    /// Whether the terminal echoes input.
    public var isEchoing: Bool {
        var settings = termios()
        return tcgetattr(descriptor, &settings) == 0 && settings.c_lflag & tcflag_t(ECHO) != 0
    }
}
