// SPDX-License-Identifier: Apache-2.0
//
// Has names of hosts be looked up for ever, as by a resolver that nobody answers. For LD_PRELOAD.
//
//   SLOW_NAMES  a file that is made when a name is looked up; it goes on when the file is gone. Without it, which is so
//               in the tests themselves, names are looked up as ever

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <unistd.h>

typedef int lookup(const char *, const char *, const struct addrinfo *, struct addrinfo **);

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    const char *file = getenv("SLOW_NAMES");
    if (!file) {
        lookup *next = (lookup *) dlsym(RTLD_NEXT, "getaddrinfo");
        return next ? next(node, service, hints, result) : EAI_SYSTEM;
    }
    int descriptor = open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor >= 0) close(descriptor);
    while (access(file, F_OK) == 0) usleep(10000);
    return EAI_AGAIN;
}
