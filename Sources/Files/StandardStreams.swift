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
}
