// SPDX-License-Identifier: Apache-2.0
//
// Calls one method over and over, and prints one line:
//
//     calls=10000 rate=14210.3 p50_usec=68.1 p99_usec=102.9
//
// GetSnapshot adds what the reply holds (keys=… bytes=…). An error in any reply ends the program with status 1.

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "method.h"

static const char usage[] =
    "usage: load ADDRESS PATH METHOD [OPTIONS]\n"
    "METHOD: GetValue, SetValue, Apply, GetSnapshot; GetProperty, SetProperty (xfconfd, PATH /org/xfce/Xfconf)\n"
    "  --in-flight N   calls outstanding at a time (1)\n"
    "  --calls N       calls to time (10000)\n"
    "  --warm-up N     calls before those (a tenth, at least 2 for each in flight)\n"
    "  --keys K        go around K keys, up to 10000 (100)\n"
    "  --per-call N    keys in one Apply (100)\n"
    "  --size BYTES    of each value, 16 and more (16)\n"
    "  --stores N      PATH is a prefix: go around the stores PATH00001 to N";

/// One of the calls that may be outstanding. When its reply arrives, it starts the next.
struct lane {
    struct run *run;
    uint64_t started;
};

/// `count` calls. `first` is the number of the first one.
struct run {
    sd_bus *bus;
    struct request *request;
    uint64_t first, count;
    uint64_t sent, done;
    uint64_t *latencies;
};

static void call_in_turn(struct run *run) {
    for (; run->done < run->count; run->done++) {
        sd_bus_error error = SD_BUS_ERROR_NULL;
        sd_bus_message *reply = NULL;
        sd_bus_message *call = new_call(run->bus, run->request, run->first + run->done);
        uint64_t started = now_nsec();
        int r = sd_bus_call(run->bus, call, 0, &error, &reply);
        run->latencies[run->done] = now_nsec() - started;
        check_reply(r, &error, run->request->method->name);
        sd_bus_message_unref(reply);
        sd_bus_message_unref(call);
    }
}

static void send_next(struct lane *lane);

static int received(sd_bus_message *reply, void *userdata, sd_bus_error *error) {
    (void)error;
    struct lane *lane = userdata;
    struct run *run = lane->run;
    run->latencies[run->done++] = now_nsec() - lane->started;
    check_reply(0, sd_bus_message_get_error(reply), run->request->method->name);
    if (run->sent < run->count)
        send_next(lane);
    return 0;
}

static void send_next(struct lane *lane) {
    struct run *run = lane->run;
    sd_bus_message *call = new_call(run->bus, run->request, run->first + run->sent++);
    lane->started = now_nsec();
    check(sd_bus_call_async(run->bus, NULL, call, received, lane, 0), "sd_bus_call_async");
    sd_bus_message_unref(call);
}

static void call_in_flight(struct run *run, unsigned in_flight) {
    struct lane *lanes = calloc(in_flight, sizeof *lanes);
    if (lanes == NULL)
        die("no memory");
    for (unsigned i = 0; i < in_flight && run->sent < run->count; i++) {
        lanes[i].run = run;
        send_next(&lanes[i]);
    }
    while (run->done < run->count)
        if (check(sd_bus_process(run->bus, NULL), "sd_bus_process") == 0)
            check(sd_bus_wait(run->bus, UINT64_MAX), "sd_bus_wait");
    free(lanes);
}

/// Returns how long the calls took, in ns.
static uint64_t perform(struct run *run, unsigned in_flight) {
    uint64_t started = now_nsec();
    if (in_flight == 1)
        call_in_turn(run);
    else
        call_in_flight(run, in_flight);
    return now_nsec() - started;
}

static void print_snapshot(sd_bus *bus, struct request *request) {
    sd_bus_error error = SD_BUS_ERROR_NULL;
    sd_bus_message *reply = NULL;
    sd_bus_message *call = new_call(bus, request, 0);
    check_reply(sd_bus_call(bus, call, 0, &error, &reply), &error, request->method->name);
    unsigned keys;
    size_t bytes;
    measure_snapshot(reply, &keys, &bytes);
    printf("keys=%u bytes=%zu ", keys, bytes);
    sd_bus_message_unref(reply);
    sd_bus_message_unref(call);
}

static void print_rate(struct run *run, uint64_t elapsed) {
    qsort(run->latencies, run->count, sizeof *run->latencies, compare_nsec);
    printf("calls=%" PRIu64 " rate=%.1f p50_usec=%.1f p99_usec=%.1f\n", run->count,
           (double)run->count * 1e9 / (double)elapsed, (double)run->latencies[run->count / 2] / 1e3,
           (double)run->latencies[run->count * 99 / 100] / 1e3);
}

struct options {
    const char *address;
    unsigned in_flight;
    uint64_t calls;
    uint64_t warm_up;
};

static void parse(int argc, char **argv, struct options *options, struct request *request) {
    enum { IN_FLIGHT = 1, CALLS, WARM_UP, KEYS, PER_CALL, SIZE, STORES };
    static const struct option names[] = {
        {"in-flight", required_argument, NULL, IN_FLIGHT},
        {"calls", required_argument, NULL, CALLS},
        {"warm-up", required_argument, NULL, WARM_UP},
        {"keys", required_argument, NULL, KEYS},
        {"per-call", required_argument, NULL, PER_CALL},
        {"size", required_argument, NULL, SIZE},
        {"stores", required_argument, NULL, STORES},
        {0},
    };
    uint64_t warm_up = UINT64_MAX;
    for (int option; (option = getopt_long(argc, argv, "", names, NULL)) != -1;) {
        switch (option) {
        case IN_FLIGHT: options->in_flight = (unsigned)parse_number(optarg, 1); break;
        case CALLS: options->calls = parse_number(optarg, 1); break;
        case WARM_UP: warm_up = parse_number(optarg, 0); break;
        case KEYS: request->keys = (unsigned)parse_number(optarg, 1); break;
        case PER_CALL: request->keys_per_call = (unsigned)parse_number(optarg, 1); break;
        case SIZE: request->value_size = parse_number(optarg, SMALL_VALUE_SIZE); break;
        case STORES: request->stores = (unsigned)parse_number(optarg, 1); break;
        default: die("%s", usage);
        }
    }
    if (argc - optind != 3 || request->value_size > LARGEST_VALUE_SIZE || request->keys > 10000)
        die("%s", usage);
    options->address = argv[optind];
    request->path = argv[optind + 1];
    request->method = method_named(argv[optind + 2]);
    if (strcmp(request->method->name, "Apply") == 0 && request->keys < request->keys_per_call)
        die("an Apply of %u keys needs as many --keys", request->keys_per_call);

    uint64_t tenth = options->calls / 10, filled = 2 * (uint64_t)options->in_flight;
    options->warm_up = warm_up != UINT64_MAX ? warm_up : tenth > filled ? tenth : filled;
}

int main(int argc, char **argv) {
    struct options options = {.in_flight = 1, .calls = 10000};
    struct request request = {
        .keys = 100,
        .keys_per_call = 100,
        .value_size = SMALL_VALUE_SIZE,
        .value = now_nsec(),
    };
    parse(argc, argv, &options, &request);

    uint64_t most = options.calls > options.warm_up ? options.calls : options.warm_up;
    uint64_t *latencies = calloc(most, sizeof *latencies);
    if (latencies == NULL)
        die("no memory");
    // Touch the pages now, not while timing.
    memset(latencies, 1, most * sizeof *latencies);

    sd_bus *bus = connect_to(options.address);
    await_owner(bus, request.method->service, 0);
    if (strcmp(request.method->name, "GetSnapshot") == 0)
        print_snapshot(bus, &request);

    struct run warm_up = {.bus = bus, .request = &request, .count = options.warm_up, .latencies = latencies};
    perform(&warm_up, options.in_flight);
    struct run timed = {
        .bus = bus, .request = &request, .first = options.warm_up, .count = options.calls, .latencies = latencies};
    print_rate(&timed, perform(&timed, options.in_flight));
    return EXIT_SUCCESS;
}
