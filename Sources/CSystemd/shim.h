// SPDX-License-Identifier: Apache-2.0
#ifndef CSYSTEMD_SHIM_H
#define CSYSTEMD_SHIM_H

#include <systemd/sd-bus.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <systemd/sd-id128.h>

#include <signal.h>
// Missing from the Glibc module.
#include <malloc.h>
#include <sys/auxv.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/socket.h>

#include <errno.h>
#include <linux/rtnetlink.h>
#include <unistd.h>

/// A socket that is told of each route that comes or goes: rtnetlink(7), which Swift has no declarations of.
/// - Returns: the socket, or minus an errno.
static inline int shim_route_socket(void) {
    int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_ROUTE);
    if (fd < 0) return -errno;
    struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = RTMGRP_IPV4_ROUTE | RTMGRP_IPV6_ROUTE};
    if (bind(fd, (struct sockaddr *) &address, sizeof address) == 0) return fd;
    int error = errno;
    close(fd);
    return -error;
}

// Swift can't import the SD_BUS_VTABLE_START() family: they are initializers, not expressions. Each function copies a
// static prototype, because sd-bus-vtable.h wants the parts of the union that an entry doesn't use to be zero, which
// only static storage promises. The handlers' userdata is `userdata` itself (SD_BUS_VTABLE_ABSOLUTE_OFFSET), whatever
// object was found, so that an entry can lead straight to the Swift value that implements it.

static inline sd_bus_vtable shim_vtable_start(void) {
    // From C also because START points at sd_bus_object_vtable_format, which Swift would take the address of a copy of.
    static const sd_bus_vtable prototype = SD_BUS_VTABLE_START(0);
    return prototype;
}

static inline sd_bus_vtable shim_vtable_end(void) {
    static const sd_bus_vtable prototype = SD_BUS_VTABLE_END;
    return prototype;
}

/// `names`: of the arguments, then of the results, each with its U+0000, then one more U+0000.
static inline sd_bus_vtable shim_vtable_method(
    const char *member, const char *signature, const char *result, const char *names,
    sd_bus_message_handler_t handler, void *userdata, uint64_t flags) {
    static const sd_bus_vtable prototype = SD_BUS_METHOD_WITH_NAMES_OFFSET("", "", "", "", "", NULL, 0, 0);
    sd_bus_vtable entry = prototype;
    entry.flags = flags | SD_BUS_VTABLE_ABSOLUTE_OFFSET;
    entry.x.method.member = member;
    entry.x.method.signature = signature;
    entry.x.method.result = result;
    entry.x.method.names = names;
    entry.x.method.handler = handler;
    entry.x.method.offset = (size_t) userdata;
    return entry;
}

/// `names`: of the arguments, each with its U+0000, then one more U+0000.
static inline sd_bus_vtable shim_vtable_signal(const char *member, const char *signature, const char *names) {
    static const sd_bus_vtable prototype = SD_BUS_SIGNAL_WITH_NAMES("", "", "", 0);
    sd_bus_vtable entry = prototype;
    entry.x.signal.member = member;
    entry.x.signal.signature = signature;
    entry.x.signal.names = names;
    return entry;
}

static inline sd_bus_vtable shim_vtable_property(
    const char *member, const char *signature, sd_bus_property_get_t get, void *userdata, uint64_t flags) {
    static const sd_bus_vtable prototype = SD_BUS_PROPERTY("", "", NULL, 0, 0);
    sd_bus_vtable entry = prototype;
    entry.flags = flags | SD_BUS_VTABLE_ABSOLUTE_OFFSET;
    entry.x.property.member = member;
    entry.x.property.signature = signature;
    entry.x.property.get = get;
    entry.x.property.offset = (size_t) userdata;
    return entry;
}

#endif
