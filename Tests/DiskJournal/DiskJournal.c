// SPDX-License-Identifier: Apache-2.0
//
// Records what a program does to files, and kills the program at a chosen moment. For LD_PRELOAD.
//
//   DISK_JOURNAL        the file to which the journal is appended
//   DISK_JOURNAL_ROOTS  the directories to record, separated by colons
//   DISK_FAULTS         a file that may come and go: while it exists, the operation that it names (open, write, sync,
//                       name, read) fails with the error number that follows the name; if a second number follows, only
//                       so often. Reads fail of databases alone.
//   DISK_GATE           a file that may come and go: while it exists, syncing waits
//   DISK_DELAY          how much longer each sync takes, in milliseconds
//
// A file beside the journal, with .kill after its name, holds the number of the operation, from 1, before which the
// program is killed; if "half" follows, a write first does its first half. The file counts for one start: it is removed
// when it is read.
//
// One lock is held over each operation and its record, so the journal has the operations in order. A file is named by
// its inode. SQLite maps its wal-index instead of writing it, so the journal doesn't have it; SQLite rebuilds it when
// nobody else has the database open. DiskJournal.swift reads the records.

#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { WRITE = 1, TRUNCATE, SYNC, CREATE, MKDIR, RENAME, LINK, UNLINK, RMDIR };

struct record {
    uint32_t operation, path_length, target_length, padding;
    uint64_t inode, offset, length;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static const char *roots, *faults, *gate;
static long delay;
static int journal = -1;
static long number, kill_at;
static int kills_half;

static void read_kill(const char *path) {
    char name[PATH_MAX], text[64] = "";
    snprintf(name, sizeof name, "%s.kill", path);
    int file = (int)syscall(SYS_openat, AT_FDCWD, name, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    (void)!syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    syscall(SYS_unlinkat, AT_FDCWD, name, 0);
    kill_at = atol(text);
    kills_half = strstr(text, "half") != NULL;
}

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("DISK_JOURNAL");
    roots = getenv("DISK_JOURNAL_ROOTS");
    faults = getenv("DISK_FAULTS");
    gate = getenv("DISK_GATE");
    const char *milliseconds = getenv("DISK_DELAY");
    if (milliseconds) delay = atol(milliseconds);
    if (!path || !roots) return;
    read_kill(path);
    journal = (int)syscall(SYS_openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
}

// Whether an operation is to fail now; sets errno.
static int fails(const char *operation) {
    char text[64] = "";
    int kept = errno, file = faults ? (int)syscall(SYS_openat, AT_FDCWD, faults, O_RDONLY | O_CLOEXEC) : -1;
    errno = kept;
    if (file < 0) return 0;
    (void)!syscall(SYS_read, file, text, sizeof text - 1);
    syscall(SYS_close, file);
    size_t length = strlen(operation);
    if (strncmp(text, operation, length) != 0 || text[length] != ' ') return 0;
    static long failures;
    long most = -1;
    int error = 0;
    sscanf(text + length, "%d %ld", &error, &most);
    if (most >= 0 && __sync_fetch_and_add(&failures, 1) >= most) return 0;
    errno = error;
    return 1;
}

static int is_below_root(const char *path) {
    for (const char *root = roots; root && *root;) {
        size_t length = strcspn(root, ":");
        if (strncmp(path, root, length) == 0 && (path[length] == '/' || path[length] == 0)) return 1;
        root += length + (root[length] == ':');
    }
    return 0;
}

static int path_of(int descriptor, char *path) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, path, PATH_MAX - 1);
    path[length < 0 ? 0 : length] = 0;
    return length > 0;
}

// Finds the absolute path that a call names. Returns 0 if it isn't below a root.
static int resolve(int directory, const char *name, char *path) {
    if (journal < 0 || !name) return 0;
    char base[PATH_MAX] = "";
    if (name[0] != '/') {
        if (directory == AT_FDCWD ? !getcwd(base, sizeof base) : !path_of(directory, base)) return 0;
    }
    if (snprintf(path, PATH_MAX, name[0] == '/' ? "%s%s" : "%s/%s", base, name) >= PATH_MAX) return 0;
    return is_below_root(path);
}

static int is_ours(int descriptor) {
    char path[PATH_MAX];
    return journal >= 0 && path_of(descriptor, path) && is_below_root(path) && !strstr(path, "-shm");
}

// Counts an operation, before it is done and with the lock held. Returns whether the program dies at it.
static int is_last(void) {
    return ++number == kill_at;
}

static void die(void) {
    syscall(SYS_kill, getpid(), SIGKILL);
    for (;;) pause();
}

static void append(uint32_t operation, uint64_t inode, uint64_t offset, const void *bytes, uint64_t length,
                   const char *path, const char *target) {
    struct record record = {operation, path ? (uint32_t)strlen(path) : 0, target ? (uint32_t)strlen(target) : 0, 0,
                            inode, offset, length};
    struct iovec parts[] = {{&record, sizeof record},
                            {(void *)path, record.path_length},
                            {(void *)target, record.target_length},
                            {(void *)bytes, operation == WRITE ? length : 0}};
    // The result is ignored, because the disk has room.
    (void)!syscall(SYS_writev, journal, parts, 4);
}

static uint64_t inode_of(int descriptor) {
    struct stat status;
    return fstat(descriptor, &status) == 0 ? status.st_ino : 0;
}

static uint64_t inode_at(const char *path) {
    struct stat status;
    return lstat(path, &status) == 0 ? status.st_ino : 0;
}

// MARK: Content

static ssize_t write_at(int descriptor, const void *bytes, size_t length, off_t offset, int appends) {
    pthread_mutex_lock(&lock);
    int dies = is_last();
    if (dies) {
        if (!kills_half) die();
        length /= 2;
    }
    if (appends) {
        struct stat status;
        int flags = (int)syscall(SYS_fcntl, descriptor, F_GETFL);
        offset = flags & O_APPEND && fstat(descriptor, &status) == 0 ? status.st_size
                                                                     : syscall(SYS_lseek, descriptor, 0, SEEK_CUR);
    }
    ssize_t result = appends ? syscall(SYS_write, descriptor, bytes, length)
                             : syscall(SYS_pwrite64, descriptor, bytes, length, offset);
    int error = errno;
    if (result > 0) append(WRITE, inode_of(descriptor), (uint64_t)offset, bytes, (uint64_t)result, NULL, NULL);
    if (dies) die();
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

static int can_read(int descriptor) {
    char path[PATH_MAX];
    if (!faults || !is_ours(descriptor) || !path_of(descriptor, path)) return 1;
    return !strstr(path, "/stores.sqlite") || !fails("read");
}

ssize_t read(int descriptor, void *bytes, size_t length) {
    return can_read(descriptor) ? syscall(SYS_read, descriptor, bytes, length) : -1;
}

ssize_t pread64(int descriptor, void *bytes, size_t length, off64_t offset) {
    return can_read(descriptor) ? syscall(SYS_pread64, descriptor, bytes, length, offset) : -1;
}

ssize_t pread(int descriptor, void *bytes, size_t length, off_t offset) {
    return pread64(descriptor, bytes, length, offset);
}

ssize_t write(int descriptor, const void *bytes, size_t length) {
    if (!is_ours(descriptor)) return syscall(SYS_write, descriptor, bytes, length);
    if (fails("write")) return -1;
    return write_at(descriptor, bytes, length, 0, 1);
}

ssize_t pwrite64(int descriptor, const void *bytes, size_t length, off64_t offset) {
    if (!is_ours(descriptor)) return syscall(SYS_pwrite64, descriptor, bytes, length, offset);
    return write_at(descriptor, bytes, length, offset, 0);
}

ssize_t pwrite(int descriptor, const void *bytes, size_t length, off_t offset) {
    return pwrite64(descriptor, bytes, length, offset);
}

int ftruncate64(int descriptor, off64_t length) {
    if (!is_ours(descriptor)) return (int)syscall(SYS_ftruncate, descriptor, length);
    pthread_mutex_lock(&lock);
    if (is_last()) die();
    int result = (int)syscall(SYS_ftruncate, descriptor, length);
    if (result == 0) append(TRUNCATE, inode_of(descriptor), (uint64_t)length, NULL, 0, NULL, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}

int ftruncate(int descriptor, off_t length) { return ftruncate64(descriptor, length); }

static int sync_with(long call, int descriptor) {
    if (!is_ours(descriptor)) return (int)syscall(call, descriptor);
    if (fails("sync")) return -1;
    while (gate && access(gate, F_OK) == 0) usleep(1000);
    if (delay > 0) usleep((useconds_t)delay * 1000);
    char path[PATH_MAX];
    pthread_mutex_lock(&lock);
    if (is_last()) die();
    int result = (int)syscall(call, descriptor);
    if (result == 0 && path_of(descriptor, path)) append(SYNC, inode_of(descriptor), 0, NULL, 0, path, NULL);
    pthread_mutex_unlock(&lock);
    return result;
}

int fsync(int descriptor) { return sync_with(SYS_fsync, descriptor); }
int fdatasync(int descriptor) { return sync_with(SYS_fdatasync, descriptor); }

// MARK: Names

static int open_at(int directory, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (faults && resolve(directory, name, path) && fails("open")) return -1;
    if (!(flags & (O_CREAT | O_TRUNC)) || !resolve(directory, name, path) || strstr(path, "-shm"))
        return (int)syscall(SYS_openat, directory, name, flags, mode);
    pthread_mutex_lock(&lock);
    uint64_t before = inode_at(path);
    int changes = !before || flags & O_TRUNC;
    if (changes && is_last()) die();
    int result = (int)syscall(SYS_openat, directory, name, flags, mode);
    int error = errno;
    if (result >= 0 && !before) append(CREATE, inode_of(result), mode, NULL, 0, path, NULL);
    if (result >= 0 && before && flags & O_TRUNC) append(TRUNCATE, before, 0, NULL, 0, NULL, NULL);
    pthread_mutex_unlock(&lock);
    errno = error;
    return result;
}

#define MODE(flags)                            \
    mode_t mode = 0;                           \
    if ((flags) & (O_CREAT | O_TMPFILE)) {     \
        va_list list;                          \
        va_start(list, flags);                 \
        mode = va_arg(list, mode_t);           \
        va_end(list);                          \
    }

int open(const char *name, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE(flags) return open_at(AT_FDCWD, name, flags | O_LARGEFILE, mode); }
int openat(int directory, const char *name, int flags, ...) { MODE(flags) return open_at(directory, name, flags, mode); }
int openat64(int directory, const char *name, int flags, ...) { MODE(flags) return open_at(directory, name, flags, mode); }

// Carries out a call that changes one name, or two.
static int change_name(uint32_t operation, int directory, const char *name, int to, const char *target, int flags) {
    char path[PATH_MAX], other[PATH_MAX] = "";
    int counts = resolve(directory, name, path);
    if (target) counts = resolve(to, target, other) && counts;
    if (counts && fails("name")) return -1;
    if (counts) pthread_mutex_lock(&lock);
    if (counts && is_last()) die();
    uint64_t inode = counts ? inode_at(path) : 0;
    long result = operation == MKDIR    ? syscall(SYS_mkdirat, directory, name, flags)
                  : operation == RENAME ? syscall(SYS_renameat2, directory, name, to, target, flags)
                  : operation == LINK   ? syscall(SYS_linkat, directory, name, to, target, flags)
                                        : syscall(SYS_unlinkat, directory, name, flags);
    int error = errno;
    if (counts && result == 0)
        append(operation, operation == MKDIR ? inode_at(path) : inode, (uint64_t)flags, NULL, 0, path, other);
    if (counts) pthread_mutex_unlock(&lock);
    errno = error;
    return (int)result;
}

int mkdir(const char *name, mode_t mode) { return change_name(MKDIR, AT_FDCWD, name, 0, NULL, (int)mode); }
int mkdirat(int directory, const char *name, mode_t mode) {
    return change_name(MKDIR, directory, name, 0, NULL, (int)mode);
}
int rename(const char *name, const char *target) {
    return change_name(RENAME, AT_FDCWD, name, AT_FDCWD, target, 0);
}
int renameat(int directory, const char *name, int to, const char *target) {
    return change_name(RENAME, directory, name, to, target, 0);
}
int link(const char *name, const char *target) { return change_name(LINK, AT_FDCWD, name, AT_FDCWD, target, 0); }
int linkat(int directory, const char *name, int to, const char *target, int flags) {
    return change_name(LINK, directory, name, to, target, flags);
}
int unlink(const char *name) { return change_name(UNLINK, AT_FDCWD, name, 0, NULL, 0); }
int unlinkat(int directory, const char *name, int flags) {
    return change_name(flags & AT_REMOVEDIR ? RMDIR : UNLINK, directory, name, 0, NULL, flags);
}
int rmdir(const char *name) { return change_name(RMDIR, AT_FDCWD, name, 0, NULL, AT_REMOVEDIR); }
