// SPDX-License-Identifier: Apache-2.0
//
// sync-delay ADDRESS-A ADDRESS-B PATH URL COUNT SPACING-MS
//
// Two services on two buses are two devices. Signs both in to URL, subscribes on B to the store PATH, sets a value on A
// every SPACING-MS, and prints for each the milliseconds from just before the call on A to the signal on B. Ends with
// an error if B does not have the value when the signal arrives.

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fixture.h"

#define NSEC_PER_MSEC UINT64_C(1000000)
#define TIMEOUT_NSEC (30 * 1000 * NSEC_PER_MSEC)
#define POLL_USEC 50000
/// The pause after the initial syncs, whose own uploads and downloads are not measured.
#define SETTLE_USEC 3000000

static const char key[] = "key-0000";

static void account_path(char path[PATH_SIZE]) {
    snprintf(path, PATH_SIZE, ACCOUNT_PATH_FORMAT, (unsigned)getuid());
}

static void sign_in(sd_bus *bus, const char *url) {
    char path[PATH_SIZE];
    account_path(path);
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_call_method(bus, STORE_SERVICE, path, ACCOUNT_INTERFACE, "SignIn", &error, NULL, "sa{sv}", url, 0);
    check_reply(r, &error, "SignIn");
}

static void await_initial_sync(sd_bus *bus) {
    char path[PATH_SIZE];
    account_path(path);
    uint64_t deadline = now_nsec() + TIMEOUT_NSEC;
    for (int done = 0; !done; usleep(POLL_USEC)) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        int r = sd_bus_get_property_trivial(bus, STORE_SERVICE, path, ACCOUNT_INTERFACE, "InitialSyncDone", &error,
                                            'b', &done);
        check_reply(r, &error, "InitialSyncDone");
        if (now_nsec() > deadline)
            die("the initial sync is not done after 30 s");
    }
}

static void subscribe(sd_bus *bus, const char *path) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_call_method(bus, STORE_SERVICE, path, STORE_INTERFACE, "Subscribe", &error, NULL, "t", UINT64_C(0));
    check_reply(r, &error, "Subscribe");
}

static void set(sd_bus *bus, const char *path, const char *value) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    int r = sd_bus_call_method(bus, STORE_SERVICE, path, STORE_INTERFACE, "SetValue", &error, NULL, "sv", key, "s",
                               value);
    check_reply(r, &error, "SetValue");
}

static void expect(sd_bus *bus, const char *path, const char *expected) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    const char *value;
    int r = sd_bus_call_method(bus, STORE_SERVICE, path, STORE_INTERFACE, "GetValue", &error, &reply, "s", key);
    check_reply(r, &error, "GetValue");
    check(sd_bus_message_read(reply, "v", "s", &value), "reply of GetValue");
    if (strcmp(value, expected) != 0)
        die("B has %s after the signal, not %s", value, expected);
    sd_bus_message_unref(reply);
}

/// Sets `arrived` to the time if the key is among the changed ones.
static int did_change(sd_bus_message *signal, void *arrived, sd_bus_error *error) {
    (void)error;
    uint64_t now = now_nsec();
    uint32_t reason;
    const char *changed;
    check(sd_bus_message_read(signal, "u", &reason), "DidChangeExternally");
    check(sd_bus_message_enter_container(signal, SD_BUS_TYPE_ARRAY, "s"), "DidChangeExternally");
    while (check(sd_bus_message_read(signal, "s", &changed), "DidChangeExternally") > 0)
        if (strcmp(changed, key) == 0)
            *(uint64_t *)arrived = now;
    return 0;
}

static void await_signal(sd_bus *bus, const uint64_t *arrived, uint64_t deadline) {
    while (*arrived == 0) {
        if (check(sd_bus_process(bus, NULL), "sd_bus_process") > 0)
            continue;
        if (now_nsec() > deadline)
            die("no signal on B after 30 s");
        check(sd_bus_wait(bus, POLL_USEC), "sd_bus_wait");
    }
}

int main(int argc, char **argv) {
    if (argc != 7)
        die("usage: sync-delay ADDRESS-A ADDRESS-B PATH URL COUNT SPACING-MS");
    const char *path = argv[3], *url = argv[4];
    uint64_t count = parse_number(argv[5], 1), spacing = parse_number(argv[6], 0) * NSEC_PER_MSEC;

    sd_bus *a = connect_to(argv[1]), *b = connect_to(argv[2]);
    sd_bus *devices[] = {a, b};
    for (int i = 0; i < 2; i++) {
        await_owner(devices[i], STORE_SERVICE, 0);
        sign_in(devices[i], url);
        await_initial_sync(devices[i]);
    }
    uint64_t arrived = 0;
    check(sd_bus_match_signal(b, NULL, STORE_SERVICE, NULL, STORE_INTERFACE, "DidChangeExternally", did_change,
                              &arrived),
          "sd_bus_match_signal");
    subscribe(b, path);
    // The first change comes after as long a pause as the others.
    usleep(SETTLE_USEC);
    usleep((useconds_t)(spacing / 1000));

    for (uint64_t i = 0; i < count; i++) {
        char value[SMALL_VALUE_SIZE + 1];
        value_text(value, SMALL_VALUE_SIZE, i);
        arrived = 0;
        uint64_t started = now_nsec();
        set(a, path, value);
        await_signal(b, &arrived, started + TIMEOUT_NSEC);
        expect(b, path, value);
        printf("msec=%.2f\n", (double)(arrived - started) / 1e6);
        fflush(stdout);
        uint64_t elapsed = now_nsec() - started;
        if (elapsed < spacing)
            usleep((useconds_t)((spacing - elapsed) / 1000));
    }
    return EXIT_SUCCESS;
}
