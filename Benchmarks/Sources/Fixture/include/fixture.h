// SPDX-License-Identifier: Apache-2.0
//
// What the services and the clients of this package agree on, so that every subject is asked for the same keys and
// answers with the same bytes. Whatever fails ends the process with status 1 and a sentence: a measurement with an
// error in it is no measurement.

#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdnoreturn.h>
#include <sys/types.h>
#include <systemd/sd-bus.h>

#define STORE_SERVICE "org.example.UbiquitousStore"
#define STORE_INTERFACE "org.example.UbiquitousStore"
#define ACCOUNT_INTERFACE "org.example.UbiquitousStore.Account"
#define ACCOUNT_PATH_FORMAT "/org/example/UbiquitousStore/v1/u%u"

#define XFCONF_SERVICE "org.xfce.Xfconf"
#define XFCONF_INTERFACE "org.xfce.Xfconf"
#define XFCONF_CHANNEL "benchmarks"

/// A value's size where nothing else is asked for, and the size of what `baseline` answers GetValue with.
#define SMALL_VALUE_SIZE 16
/// The full store: 1024 keys, 1.02 MB.
#define FULL_STORE_KEYS 1024
#define FULL_STORE_VALUE_SIZE 1000
#define LARGEST_VALUE_SIZE (1024 * 1024)

#define KEY_SIZE 16
#define PATH_SIZE 512

noreturn void die(const char *format, ...) __attribute__((format(printf, 1, 2)));
/// Dies if `r` is a negative errno.
int check(int r, const char *what);
/// As `check`, with the error's name and message if there is one.
void check_reply(int r, const sd_bus_error *error, const char *what);

uint64_t now_nsec(void);
int compare_nsec(const void *a, const void *b);
/// A decimal number of at least `least`.
uint64_t parse_number(const char *text, uint64_t least);

/// `xfconf` wants a property name, which starts with a slash: skip the first byte for a key.
void property_name(char name[KEY_SIZE], unsigned index);
/// `size` bytes of text, other ones for each `n`; `text` has room for the NUL.
void value_text(char *text, size_t size, uint64_t n);
/// The path of the store `number` (from 1) among many whose paths start with `prefix`.
void numbered_path(char path[PATH_SIZE], const char *prefix, unsigned number);

sd_bus *connect_to(const char *address);
/// Returns when somebody owns `name`. Dies after 10 s, or when `owner`, the process that should (0: unknown), has
/// ended.
void await_owner(sd_bus *bus, const char *name, pid_t owner);
