// SPDX-License-Identifier: Apache-2.0

// Each process that puts writes into outboxes locks a byte of the directory's file ".owners", at an offset of its own,
// and names the offset in its writes. The lock ends with the process, however that ends. While it is held, nobody else
// delivers these writes: the process sends them itself, and an older one that somebody else delivers in between would
// make the newer one look late. No domain's file has this name, because names of domains don't begin with a dot there.
//
// The locks are those of fcntl_locking(2) that belong to an open file ("OFD"). With the others, which belong to the
// process, closing any descriptor of the file would end the lock.

internal import Files
internal import Glibc

/// Shows other processes that this one runs, and sends its own writes.
final class OutboxOwner: Sendable {
    /// The number that the process's writes have; never 0.
    let number: Int64 = .random(in: 1...(1 << 62))
    private let descriptor: Int32

    /// Locks the number in a directory of outboxes. Where that is not possible, others deliver these writes at any time.
    init(in directory: String) {
        try? OutboxFile.make(directory)
        descriptor = Self.open(directory, O_RDWR | O_CREAT)
        var lock = Self.lock(of: number)
        _ = fcntl(descriptor, Self.setLock, &lock)
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    // The C library's header declares these for C alone: F_OFD_GETLK and F_OFD_SETLK of linux/fcntl.h.
    private static let getLock: Int32 = 36
    private static let setLock: Int32 = 37

    /// Whether the process with a number runs.
    static func isRunning(_ number: Int64, in directory: String) -> Bool {
        guard number > 0 else { return false }
        let descriptor = open(directory, O_RDWR)
        guard descriptor >= 0 else { return false }
        defer { close(descriptor) }
        var lock = lock(of: number)
        return fcntl(descriptor, getLock, &lock) == 0 && lock.l_type != F_UNLCK
    }

    private static func open(_ directory: String, _ flags: Int32) -> Int32 {
        Glibc.open(directory + "/.owners", flags | O_CLOEXEC | O_NOFOLLOW, 0o600)
    }

    private static func lock(of number: Int64) -> flock {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        (lock.l_start, lock.l_len) = (off_t(number), 1)
        return lock
    }
}
