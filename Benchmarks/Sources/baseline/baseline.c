// SPDX-License-Identifier: Apache-2.0
//
// baseline ADDRESS PATH...
//
// The least that sd-bus allows: a service with the store's interface on some paths that decodes what it receives,
// stores nothing, and replies with messages of a store's size. The benchmarks ask how near a real store comes to its
// rate, and script/pressure how near others' calls come to its latency while somebody attacks.

#include <stdio.h>
#include <stdlib.h>

#include "fixture.h"

/// How many keys the reply to GetSnapshot has that asks for changes.
#define CHANGED_KEYS 3

static uint64_t generation;
static char small_value[SMALL_VALUE_SIZE + 1];
static char full_store_keys[FULL_STORE_KEYS][KEY_SIZE];
static char full_store_values[FULL_STORE_KEYS][FULL_STORE_VALUE_SIZE + 1];

static int get_value(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    const char *key;
    int r = sd_bus_message_read(call, "s", &key);
    if (r < 0)
        return r;
    return sd_bus_reply_method_return(call, "v", "s", small_value);
}

static int get_values(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    int r = sd_bus_message_skip(call, "as");
    if (r < 0)
        return r;
    return sd_bus_reply_method_return(call, "a{sv}", 0);
}

static int set_value(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    int r = sd_bus_message_skip(call, "sv");
    if (r < 0)
        return r;
    return sd_bus_reply_method_return(call, "t", ++generation);
}

static int apply(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    int r = sd_bus_message_skip(call, "a{sv}asa{sv}");
    if (r < 0)
        return r;
    return sd_bus_reply_method_return(call, "t", ++generation);
}

/// Nobody is told of changes.
static int subscribe(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    return sd_bus_reply_method_return(call, "t", generation);
}

static int synchronize(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    return sd_bus_reply_method_return(call, "b", true);
}

static int append_entry(sd_bus_message *reply, const char *key, const char *value) {
    int r;
    if ((r = sd_bus_message_open_container(reply, SD_BUS_TYPE_DICT_ENTRY, "sv")) < 0 ||
        (r = sd_bus_message_append_basic(reply, SD_BUS_TYPE_STRING, key)) < 0 ||
        (r = sd_bus_message_open_container(reply, SD_BUS_TYPE_VARIANT, "s")) < 0 ||
        (r = sd_bus_message_append_basic(reply, SD_BUS_TYPE_STRING, value)) < 0 ||
        (r = sd_bus_message_close_container(reply)) < 0)
        return r;
    return sd_bus_message_close_container(reply);
}

/// Appends the full store; or its first keys, as if these had changed since a generation.
static int append_store(sd_bus_message *reply, uint64_t since) {
    int r;
    if ((r = sd_bus_message_append(reply, "tb", generation, since == 0)) < 0 ||
        (r = sd_bus_message_open_container(reply, SD_BUS_TYPE_ARRAY, "{sv}")) < 0)
        return r;
    for (unsigned i = 0; i < (since == 0 ? FULL_STORE_KEYS : CHANGED_KEYS); i++)
        if ((r = append_entry(reply, full_store_keys[i] + 1, full_store_values[i])) < 0)
            return r;
    if ((r = sd_bus_message_close_container(reply)) < 0)
        return r;
    return sd_bus_message_append(reply, "as", 0);
}

static int get_snapshot(sd_bus_message *call, void *userdata, sd_bus_error *error) {
    (void)userdata, (void)error;
    uint64_t since, flags;
    int r = sd_bus_message_read(call, "tt", &since, &flags);
    if (r < 0)
        return r;
    sd_bus_message *reply = NULL;
    if ((r = sd_bus_message_new_method_return(call, &reply)) >= 0 && (r = append_store(reply, since)) >= 0)
        r = sd_bus_send(NULL, reply, NULL);
    sd_bus_message_unref(reply);
    return r;
}

static const sd_bus_vtable store_vtable[] = {
    SD_BUS_VTABLE_START(0),
    SD_BUS_METHOD("GetValue", "s", "v", get_value, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("GetValues", "as", "a{sv}", get_values, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("GetSnapshot", "tt", "tba{sv}as", get_snapshot, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("SetValue", "sv", "t", set_value, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Apply", "a{sv}asa{sv}", "t", apply, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Synchronize", "t", "b", synchronize, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_METHOD("Subscribe", "t", "t", subscribe, SD_BUS_VTABLE_UNPRIVILEGED),
    SD_BUS_VTABLE_END,
};

int main(int argc, char **argv) {
    if (argc < 3)
        die("usage: baseline ADDRESS PATH...");
    value_text(small_value, SMALL_VALUE_SIZE, 0);
    for (unsigned i = 0; i < FULL_STORE_KEYS; i++) {
        property_name(full_store_keys[i], i);
        value_text(full_store_values[i], FULL_STORE_VALUE_SIZE, i);
    }

    sd_bus *bus = connect_to(argv[1]);
    for (int i = 2; i < argc; i++)
        check(sd_bus_add_object_vtable(bus, NULL, argv[i], STORE_INTERFACE, store_vtable, NULL), argv[i]);
    check(sd_bus_request_name(bus, STORE_SERVICE, 0), STORE_SERVICE);
    for (;;)
        if (check(sd_bus_process(bus, NULL), "sd_bus_process") == 0)
            check(sd_bus_wait(bus, UINT64_MAX), "sd_bus_wait");
}
