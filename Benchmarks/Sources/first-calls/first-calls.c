// SPDX-License-Identifier: Apache-2.0
//
// first-calls ADDRESS PREFIX LAST COUNT
//
// Calls GetValue once on each of the first COUNT and the last COUNT of the stores PREFIX00001 to LAST, in turns, and
// prints the medians. Run it on a service that has just started, so that none of these stores is loaded yet. A call on
// the store in the middle comes first, because a connection's first call has costs of its own.

#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

static uint64_t time_call(sd_bus *bus, const char *prefix, unsigned number) {
    char path[PATH_SIZE], name[KEY_SIZE];
    numbered_path(path, prefix, number);
    property_name(name, 0);
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    uint64_t started = now_nsec();
    int r = sd_bus_call_method(bus, STORE_SERVICE, path, STORE_INTERFACE, "GetValue", &error, &reply, "s", name + 1);
    uint64_t elapsed = now_nsec() - started;
    check_reply(r, &error, path);
    sd_bus_message_unref(reply);
    return elapsed;
}

static double median_usec(uint64_t *times, unsigned count) {
    qsort(times, count, sizeof *times, compare_nsec);
    return (double)times[count / 2] / 1e3;
}

int main(int argc, char **argv) {
    if (argc != 5)
        die("usage: first-calls ADDRESS PREFIX LAST COUNT");
    const char *prefix = argv[2];
    unsigned count = (unsigned)parse_number(argv[4], 1);
    unsigned last = (unsigned)parse_number(argv[3], 2 * count + 1);
    uint64_t *low = calloc(count, sizeof *low), *high = calloc(count, sizeof *high);
    if (low == NULL || high == NULL)
        die("no memory");

    sd_bus *bus = connect_to(argv[1]);
    await_owner(bus, STORE_SERVICE, 0);
    time_call(bus, prefix, (last + 1) / 2);
    for (unsigned i = 0; i < count; i++) {
        low[i] = time_call(bus, prefix, 1 + i);
        high[i] = time_call(bus, prefix, last - i);
    }
    printf("low_usec=%.1f high_usec=%.1f\n", median_usec(low, count), median_usec(high, count));
    return EXIT_SUCCESS;
}
