// SPDX-License-Identifier: Apache-2.0
//
// What the services and the clients of this package agree on, so that every subject gets the same keys and replies with
// the same bytes. Any failure ends the process with status 1 and a sentence, because a measurement with an error in it
// is none.

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

/// The default size of a value, and the size of the values in `baseline`'s replies to GetValue.
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
/// Parses a decimal number of at least `least`, and dies if `text` is none.
uint64_t parse_number(const char *text, uint64_t least);

/// Writes a property name, which for `xfconf` starts with a slash. Skip that byte to get a key.
void property_name(char name[KEY_SIZE], unsigned index);
/// Writes `size` bytes of text, other ones for each `n`. `text` has room for the NUL.
void value_text(char *text, size_t size, uint64_t n);
/// Writes the path of the store `number` (from 1) among many whose paths start with `prefix`.
void numbered_path(char path[PATH_SIZE], const char *prefix, unsigned number);

sd_bus *connect_to(const char *address);
/// Returns when `name` has an owner. Dies after 10 s, or when `owner`, the process that should own it (0 if unknown),
/// has ended.
void await_owner(sd_bus *bus, const char *name, pid_t owner);
