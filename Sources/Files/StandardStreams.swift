// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Standard input, output and error.
package enum StandardStreams {
    /// Occupies the streams that the process was started without, so that no socket or file gets their numbers.
    ///
    /// Reading from them and writing to them fail as before. Call this before anything is opened.
    package static func occupy() {
        for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)]
        where fcntl(descriptor, F_GETFD) < 0 {
            // open() takes the lowest free number, which is this one.
            _ = open("/dev/null", mode)
        }
    }

    /// Has ArgumentParser make help for this many columns, if the terminal or the variable `COLUMNS` has fewer. With less
    /// than 27, its debug builds crash, and the others leave texts out.
    ///
    /// Call this before there are threads, because it changes the environment.
    package static func widen(to columns: Int = 40) {
        var size = winsize()
        let reported = ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 && size.ws_col > 0 ? Int(size.ws_col) : nil
        let demanded = getenv("COLUMNS").flatMap { Int(String(cString: $0)) }
        if let width = demanded ?? reported, width < columns { setenv("COLUMNS", "\(columns)", 1) }
    }
}
