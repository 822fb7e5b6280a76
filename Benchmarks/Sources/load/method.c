// SPDX-License-Identifier: Apache-2.0

#include "method.h"

#include <string.h>

static const char *key(char name[KEY_SIZE], const struct request *request, uint64_t index) {
    property_name(name, (unsigned)(index % request->keys));
    return name + 1;
}

static const char *property(char name[KEY_SIZE], const struct request *request, uint64_t index) {
    property_name(name, (unsigned)(index % request->keys));
    return name;
}

static const char *next_value(struct request *request) {
    static char text[LARGEST_VALUE_SIZE + 1];
    value_text(text, request->value_size, request->value++);
    return text;
}

static int get_value(sd_bus_message *call, struct request *request, uint64_t index) {
    char name[KEY_SIZE];
    return sd_bus_message_append(call, "s", key(name, request, index));
}

static int set_value(sd_bus_message *call, struct request *request, uint64_t index) {
    char name[KEY_SIZE];
    return sd_bus_message_append(call, "sv", key(name, request, index), "s", next_value(request));
}

static int apply(sd_bus_message *call, struct request *request, uint64_t index) {
    int r = sd_bus_message_open_container(call, SD_BUS_TYPE_ARRAY, "{sv}");
    for (unsigned i = 0; r >= 0 && i < request->keys_per_call; i++) {
        char name[KEY_SIZE];
        const char *text = key(name, request, index * request->keys_per_call + i);
        r = sd_bus_message_append(call, "{sv}", text, "s", next_value(request));
    }
    if (r < 0 || (r = sd_bus_message_close_container(call)) < 0)
        return r;
    return sd_bus_message_append(call, "asa{sv}", 0, 0);
}

static int get_snapshot(sd_bus_message *call, struct request *request, uint64_t index) {
    (void)request, (void)index;
    return sd_bus_message_append(call, "tt", UINT64_C(0), UINT64_C(0));
}

static int get_property(sd_bus_message *call, struct request *request, uint64_t index) {
    char name[KEY_SIZE];
    return sd_bus_message_append(call, "ss", XFCONF_CHANNEL, property(name, request, index));
}

static int set_property(sd_bus_message *call, struct request *request, uint64_t index) {
    char name[KEY_SIZE];
    const char *text = property(name, request, index);
    return sd_bus_message_append(call, "ssv", XFCONF_CHANNEL, text, "s", next_value(request));
}

static const struct method methods[] = {
    {"GetValue", STORE_SERVICE, STORE_INTERFACE, get_value},
    {"SetValue", STORE_SERVICE, STORE_INTERFACE, set_value},
    {"Apply", STORE_SERVICE, STORE_INTERFACE, apply},
    {"GetSnapshot", STORE_SERVICE, STORE_INTERFACE, get_snapshot},
    {"GetProperty", XFCONF_SERVICE, XFCONF_INTERFACE, get_property},
    {"SetProperty", XFCONF_SERVICE, XFCONF_INTERFACE, set_property},
};

const struct method *method_named(const char *name) {
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++)
        if (strcmp(methods[i].name, name) == 0)
            return &methods[i];
    die("%s: no such method", name);
}

sd_bus_message *new_call(sd_bus *bus, struct request *request, uint64_t index) {
    const struct method *method = request->method;
    const char *path = request->path;
    char numbered[PATH_SIZE];
    if (request->stores > 0) {
        numbered_path(numbered, request->path, (unsigned)(index % request->stores) + 1);
        path = numbered;
    }
    sd_bus_message *call;
    check(sd_bus_message_new_method_call(bus, &call, method->service, path, method->interface, method->name), path);
    check(method->append(call, request, index), method->name);
    return call;
}

void measure_snapshot(sd_bus_message *reply, unsigned *keys, size_t *bytes) {
    static const char what[] = "reply of GetSnapshot";
    const char *name, *value;
    *keys = 0;
    *bytes = 0;
    check(sd_bus_message_skip(reply, "tb"), what);
    check(sd_bus_message_enter_container(reply, SD_BUS_TYPE_ARRAY, "{sv}"), what);
    while (check(sd_bus_message_read(reply, "{sv}", &name, "s", &value), what) > 0) {
        *keys += 1;
        *bytes += strlen(value);
    }
    check(sd_bus_message_exit_container(reply), what);
}
