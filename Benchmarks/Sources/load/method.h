// SPDX-License-Identifier: Apache-2.0

#pragma once

#include "fixture.h"

/// What to call, on which store, and with which keys and values.
struct request {
    const struct method *method;
    const char *path;
    /// 0 if `path` is a store's; otherwise `path` is a prefix, and the calls go around this many numbered stores.
    unsigned stores;
    /// The calls go around this many keys.
    unsigned keys;
    /// How many keys one Apply sets.
    unsigned keys_per_call;
    size_t value_size;
    /// Counts up with each value, from a number that no earlier run has reached, so that each write is a change.
    uint64_t value;
};

struct method {
    const char *name;
    const char *service;
    const char *interface;
    int (*append)(sd_bus_message *call, struct request *request, uint64_t index);
};

const struct method *method_named(const char *name);
/// Makes the call number `index`. Dies without memory.
sd_bus_message *new_call(sd_bus *bus, struct request *request, uint64_t index);
/// Reads how many keys a reply of GetSnapshot has, and the bytes of their values.
void measure_snapshot(sd_bus_message *reply, unsigned *keys, size_t *bytes);
