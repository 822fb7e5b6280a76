// SPDX-License-Identifier: Apache-2.0
//
// Has names of hosts be looked up for ever, as by a resolver that nobody answers. For LD_PRELOAD.
//
//   SLOW_NAMES  a file that is made when a name is looked up; it goes on when the file is gone

#define _GNU_SOURCE
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <unistd.h>

int getaddrinfo(const char *node, const char *service, const struct addrinfo *hints, struct addrinfo **result) {
    (void) node, (void) service, (void) hints, (void) result;
    const char *file = getenv("SLOW_NAMES");
    int descriptor = file ? open(file, O_CREAT | O_WRONLY | O_CLOEXEC, 0600) : -1;
    if (descriptor >= 0) close(descriptor);
    while (file && access(file, F_OK) == 0) usleep(10000);
    return EAI_AGAIN;
}
