// SPDX-License-Identifier: Apache-2.0

#include "fixture.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>

#define NSEC_PER_SEC UINT64_C(1000000000)
#define OWNER_TIMEOUT_SEC 10
#define OWNER_POLL_USEC 100000

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(EXIT_FAILURE);
}

int check(int r, const char *what) {
    if (r < 0)
        die("%s: %s", what, strerror(-r));
    return r;
}

void check_reply(int r, const sd_bus_error *error, const char *what) {
    if (sd_bus_error_is_set(error))
        die("%s: %s: %s", what, error->name, error->message ? error->message : "(no message)");
    check(r, what);
}

uint64_t now_nsec(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NSEC_PER_SEC + (uint64_t)now.tv_nsec;
}

int compare_nsec(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

uint64_t parse_number(const char *text, uint64_t least) {
    char *end;
    errno = 0;
    uint64_t number = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || text[0] == '-' || number < least)
        die("%s: not a number of %" PRIu64 " or more", text, least);
    return number;
}

void property_name(char name[KEY_SIZE], unsigned index) {
    snprintf(name, KEY_SIZE, "/key-%04u", index);
}

void value_text(char *text, size_t size, uint64_t n) {
    char digits[SMALL_VALUE_SIZE + 1];
    snprintf(digits, sizeof digits, "%016" PRIx64, n);
    memset(text, 'v', size);
    memcpy(text, digits, SMALL_VALUE_SIZE);
    text[size] = '\0';
}

void numbered_path(char path[PATH_SIZE], const char *prefix, unsigned number) {
    if (snprintf(path, PATH_SIZE, "%s%05u", prefix, number) >= PATH_SIZE)
        die("%s: too long a path", prefix);
}

sd_bus *connect_to(const char *address) {
    sd_bus *bus;
    check(sd_bus_new(&bus), "sd_bus_new");
    check(sd_bus_set_address(bus, address), address);
    check(sd_bus_set_bus_client(bus, true), "sd_bus_set_bus_client");
    check(sd_bus_start(bus), address);
    return bus;
}

static int owner_changed(sd_bus_message *message, void *found, sd_bus_error *error) {
    (void)error;
    const char *name, *before, *after;
    check(sd_bus_message_read(message, "sss", &name, &before, &after), "NameOwnerChanged");
    *(int *)found = after[0] != '\0';
    return 0;
}

static int has_owner(sd_bus *bus, const char *name) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    int owned;
    int r = sd_bus_call_method(bus, "org.freedesktop.DBus", "/org/freedesktop/DBus", "org.freedesktop.DBus",
                               "NameHasOwner", &error, &reply, "s", name);
    check_reply(r, &error, "NameHasOwner");
    check(sd_bus_message_read(reply, "b", &owned), "NameHasOwner");
    sd_bus_message_unref(reply);
    return owned;
}

/// Leaves the process to be waited for, so that its id is not reused.
static bool has_ended(pid_t process) {
    siginfo_t info = {0};
    return waitid(P_PID, (id_t)process, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == process;
}

void await_owner(sd_bus *bus, const char *name, pid_t owner) {
    char rule[256];
    snprintf(rule, sizeof rule,
             "type='signal',sender='org.freedesktop.DBus',member='NameOwnerChanged',arg0='%s'", name);
    int found = 0;
    sd_bus_slot *match;
    check(sd_bus_add_match(bus, &match, rule, owner_changed, &found), "sd_bus_add_match");
    if (has_owner(bus, name))
        found = 1;

    uint64_t deadline = now_nsec() + OWNER_TIMEOUT_SEC * NSEC_PER_SEC;
    while (!found) {
        if (check(sd_bus_process(bus, NULL), "sd_bus_process") > 0)
            continue;
        if (now_nsec() > deadline)
            die("nobody owns %s after %d s", name, OWNER_TIMEOUT_SEC);
        if (owner > 0 && has_ended(owner))
            die("the process that should own %s has ended", name);
        check(sd_bus_wait(bus, OWNER_POLL_USEC), "sd_bus_wait");
    }
    sd_bus_slot_unref(match);
}
