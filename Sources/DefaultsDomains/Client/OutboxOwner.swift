// SPDX-License-Identifier: Apache-2.0

// Each process that puts writes into outboxes locks a byte of the directory's file ".owners", at an offset of its own,
// and names the offset in its writes. The lock ends with the process, however that ends. While it is held, nobody else
// delivers these writes: the process sends them itself, and an older one that somebody else delivers in between would
// make the newer one look late. No domain's file has this name, because names of domains don't begin with a dot there.
//
// The locks are those of fcntl_locking(2) that belong to an open file ("OFD"). With the others, which belong to the
// process, closing any descriptor of the file would end the lock. A child that was forked has the file open as well, and
// would hold the lock after its parent's end, so it gives it up at once.

internal import Files
internal import Glibc
internal import Synchronization

/// Shows other processes that this one runs, and sends its own writes.
final class OutboxOwner: Sendable {
    /// The number that the process's writes have; never 0.
    let number: Int64 = .random(in: 1...(1 << 62))
    private let path: String
    private let descriptor: Int32
    private let isLocked: Bool

    // The C library's header declares these for C alone: F_OFD_GETLK and F_OFD_SETLK of linux/fcntl.h.
    private static let (getLock, setLock): (Int32, Int32) = (36, 37)

    /// Locks the number in a directory of outboxes. Where that is not possible, others deliver these writes at any time.
    init(in directory: String) {
        path = Self.path(in: directory)
        // In another user's directory, nothing may be made.
        let isOwn = (try? OutboxFile.make(directory)) != nil
        descriptor = isOwn ? open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0o600) : -1
        var lock = Self.lock(of: number)
        isLocked = descriptor >= 0 && fcntl(descriptor, Self.setLock, &lock) == 0
        if isLocked, isHandlingForks { newestLock.store(descriptor, ordering: .relaxed) }
    }

    deinit {
        _ = newestLock.compareExchange(expected: descriptor, desired: -1, ordering: .relaxed)
        if descriptor >= 0 { close(descriptor) }
    }

    /// Whether others see the lock: the file has not been replaced or removed since.
    var isSeen: Bool {
        var (own, there) = (stat(), stat())
        return isLocked && fstat(descriptor, &own) == 0 && lstat(path, &there) == 0
            && (own.st_dev, own.st_ino) == (there.st_dev, there.st_ino)
    }

    /// Returns those of some numbers whose processes run. If that can't be found out now, all of them may.
    static func running(among numbers: Set<Int64>, in directory: String) -> Set<Int64> {
        let descriptor = open(path(in: directory), O_RDWR | O_CLOEXEC | O_NOFOLLOW)
        guard descriptor >= 0 else { return errno == EMFILE || errno == ENFILE ? numbers : [] }
        defer { close(descriptor) }
        return numbers.filter { number in
            guard number > 0 else { return false }
            var lock = lock(of: number)
            return fcntl(descriptor, getLock, &lock) == 0 && lock.l_type != F_UNLCK
        }
    }

    private static func path(in directory: String) -> String { directory + "/.owners" }

    private static func lock(of number: Int64) -> flock {
        var lock = flock()
        lock.l_type = Int16(F_WRLCK)
        lock.l_whence = Int16(SEEK_SET)
        (lock.l_start, lock.l_len) = (off_t(clamping: number), 1)
        return lock
    }
}

/// The descriptor that holds this process's newest lock; -1 if none does. A process rarely has more than one.
private let newestLock = Atomic<Int32>(-1)

/// Whether forked children give the lock up. Only what signal-safety(7) lists may be called in them. The descriptor's
/// number stays taken if another file can be opened, so that nothing else is closed with it later.
private let isHandlingForks =
    pthread_atfork(nil, nil) {
        let descriptor = newestLock.load(ordering: .relaxed)
        if descriptor < 0 { return }
        let nothing = open("/dev/null", O_RDONLY | O_CLOEXEC)
        if nothing < 0 {
            newestLock.store(-1, ordering: .relaxed)
            close(descriptor)
            return
        }
        dup2(nothing, descriptor)
        _ = fcntl(descriptor, F_SETFD, FD_CLOEXEC)
        close(nothing)
    } == 0
