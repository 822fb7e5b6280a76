// SPDX-License-Identifier: Apache-2.0
//
// first-reply ADDRESS PATH PROGRAM [ARGUMENTS…]
//
// Starts a service, and prints the milliseconds from just before the fork to its reply to GetValue, which is called
// when the service has its name. Then ends the service.

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fixture.h"

#define END_TIMEOUT_SEC 5

static pid_t service;

static void kill_service(void) {
    kill(service, SIGKILL);
}

static void start(char **command) {
    service = fork();
    if (service < 0)
        die("fork: %s", strerror(errno));
    if (service == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execvp(command[0], command);
        fprintf(stderr, "%s: %s\n", command[0], strerror(errno));
        _exit(127);
    }
    atexit(kill_service);
}

static void await_reply(sd_bus *bus, const char *path) {
    char name[KEY_SIZE];
    property_name(name, 0);
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    int r = sd_bus_call_method(bus, STORE_SERVICE, path, STORE_INTERFACE, "GetValue", &error, &reply, "s", name + 1);
    check_reply(r, &error, "GetValue");
    sd_bus_message_unref(reply);
}

static void end(void) {
    kill(service, SIGTERM);
    for (int i = 0; i < END_TIMEOUT_SEC * 100; i++) {
        if (waitpid(service, NULL, WNOHANG) == service)
            _exit(EXIT_SUCCESS);
        usleep(10000);
    }
    die("the service does not end within %d s of SIGTERM", END_TIMEOUT_SEC);
}

int main(int argc, char **argv) {
    if (argc < 4)
        die("usage: first-reply ADDRESS PATH PROGRAM [ARGUMENTS...]");
    sd_bus *bus = connect_to(argv[1]);
    // Waits for the bus's Hello, so that the handshake is not part of the time.
    const char *unique;
    check(sd_bus_get_unique_name(bus, &unique), argv[1]);

    uint64_t started = now_nsec();
    start(argv + 3);
    await_owner(bus, STORE_SERVICE, service);
    await_reply(bus, argv[2]);
    printf("msec=%.2f\n", (double)(now_nsec() - started) / 1e6);
    fflush(stdout);
    end();
}
