// SPDX-License-Identifier: Apache-2.0
//
// Makes lookups of hosts, users or groups hang, as with a resolver or directory service that doesn't answer. For
// LD_PRELOAD.
//
//   SLOW_NAMES, SLOW_USERS, SLOW_GROUPS  a file that is created at a lookup, and gets a byte for each lookup. Lookups
//                                        hang until it is removed. If the variable is unset, as in the tests
//                                        themselves, lookups work as usual
//   LARGE_GROUPS                         the bytes that each group needs, as if it had many members
//   DIRECTORY_USERS                      a file in the format of passwd(5) with all users, as a directory service has
//                                        them

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

static void wait_while_there(const char *file) {
    int descriptor = open(file, O_CREAT | O_WRONLY | O_APPEND | O_CLOEXEC, 0600);
    if (descriptor >= 0) {
        if (write(descriptor, ".", 1) < 0) abort();
        close(descriptor);
    }
    while (access(file, F_OK) == 0) usleep(10000);
}

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    const char *file = getenv("SLOW_NAMES");
    if (!file) {
        lookup *next = (lookup *) dlsym(RTLD_NEXT, "getaddrinfo");
        return next ? next(node, service, hints, result) : EAI_SYSTEM;
    }
    wait_while_there(file);
    return EAI_AGAIN;
}

typedef int name_lookup(const char *, struct passwd *, char *, size_t, struct passwd **);

static int look_up(
    const char *file, const char *name, uid_t uid, struct passwd *entry, char *buffer, size_t size,
    struct passwd **result) {
    FILE *users = fopen(file, "re");
    int code = users ? fgetpwent_r(users, entry, buffer, size, result) : errno;
    while (code == 0 && (name ? strcmp(entry->pw_name, name) != 0 : entry->pw_uid != uid)) {
        code = fgetpwent_r(users, entry, buffer, size, result);
    }
    if (code) *result = NULL;
    if (users) fclose(users);
    return code;
}

int getpwnam_r(const char *name, struct passwd *entry, char *buffer, size_t size, struct passwd **result) {
    const char *users = getenv("DIRECTORY_USERS");
    if (users) return look_up(users, name, 0, entry, buffer, size, result);
    name_lookup *next = (name_lookup *) dlsym(RTLD_NEXT, "getpwnam_r");
    *result = NULL;
    return next ? next(name, entry, buffer, size, result) : ENOSYS;
}

typedef int user_lookup(uid_t, struct passwd *, char *, size_t, struct passwd **);

int getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **result) {
    const char *file = getenv("SLOW_USERS"), *users = getenv("DIRECTORY_USERS");
    if (file) wait_while_there(file);
    if (users) return look_up(users, NULL, uid, entry, buffer, size, result);
    user_lookup *next = (user_lookup *) dlsym(RTLD_NEXT, "getpwuid_r");
    *result = NULL;
    return next ? next(uid, entry, buffer, size, result) : ENOSYS;
}

typedef int group_lookup(const char *, struct group *, char *, size_t, struct group **);

int getgrnam_r(const char *name, struct group *entry, char *buffer, size_t size, struct group **result) {
    const char *file = getenv("SLOW_GROUPS");
    if (file) wait_while_there(file);
    const char *needed = getenv("LARGE_GROUPS");
    if (needed && size < strtoul(needed, NULL, 10)) return ERANGE;
    group_lookup *next = (group_lookup *) dlsym(RTLD_NEXT, "getgrnam_r");
    *result = NULL;
    return next ? next(name, entry, buffer, size, result) : ENOSYS;
}
