// SPDX-License-Identifier: Apache-2.0
//
// The package installs this program as ubiquitousctl. Scripts read values often, and the full program takes twice as
// long to start as the call takes. This one answers `get KEY` and `get --store IDENTIFIER KEY` if the value is an
// integer, a Boolean or a plain string. For everything else, it runs the full program from the start: other commands,
// other values, errors, a slow service. That is safe because reading a value changes nothing.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-bus.h>
#include <unistd.h>

#ifndef COMMANDS
#define COMMANDS "/usr/libexec/ubiquitous-store/ubiquitousctl"
#endif

static char **words;

// Replaces this process with the full program.
static void leave_it(int number) {
    (void)number;
    alarm(0);
    signal(SIGPIPE, SIG_DFL);
    words[0] = "ubiquitousctl";
    execv(COMMANDS, words);
    static const char sentence[] = "ubiquitousctl: " COMMANDS " can't be run; install the package again.\n";
    (void)!write(STDERR_FILENO, sentence, sizeof sentence - 1);
    _exit(4);
}

// Whether a word can't be an option, and isn't empty.
static bool is_operand(const char *word) { return word[0] != '\0' && word[0] != '-'; }

static const char *variable(const char *name) {
    const char *value = getenv(name);
    return value && *value ? value : NULL;
}

// Whether a string is certain to be printed without quotes: it begins with an ASCII letter, doesn't end with a space,
// isn't a word of JSON, and has only printable ASCII and characters from U+00C0 on that take two bytes in UTF-8.
static bool is_plain(const char *text) {
    if (!((text[0] >= 'a' && text[0] <= 'z') || (text[0] >= 'A' && text[0] <= 'Z'))) return false;
    if (!strcmp(text, "true") || !strcmp(text, "false") || !strcmp(text, "null")) return false;
    const unsigned char *byte = (const unsigned char *)text;
    for (; *byte; byte++) {
        if (byte[0] >= 0xC3 && byte[0] <= 0xDF && byte[1]) byte++;
        else if (byte[0] < 0x20 || byte[0] > 0x7E) return false;
    }
    return byte[-1] != ' ';
}

// sd-bus is loaded only when needed, because for other commands the full program loads it again.
#define FUNCTIONS(f) \
    f(sd_bus_new) f(sd_bus_set_address) f(sd_bus_set_bus_client) f(sd_bus_start) f(sd_bus_open_system) \
    f(sd_bus_path_encode) f(sd_bus_call_method) f(sd_bus_message_enter_container) f(sd_bus_message_peek_type) \
    f(sd_bus_message_read_basic)
#define DECLARE(name) static __typeof__(name) *p_##name;
FUNCTIONS(DECLARE)

static bool load(void) {
    void *library = dlopen("libsystemd.so.0", RTLD_LAZY);
#define FIND(name) if (!library || !(p_##name = (__typeof__(name) *)dlsym(library, #name))) return false;
    FUNCTIONS(FIND)
    return true;
}

static bool open_bus(sd_bus **bus) {
    const char *address = variable("UBIQUITOUS_STORE_BUS");
    if (!address || !strcmp(address, "system")) return p_sd_bus_open_system(bus) >= 0;
    return strcmp(address, "session") && p_sd_bus_new(bus) >= 0 && p_sd_bus_set_address(*bus, address) >= 0 &&
        p_sd_bus_set_bus_client(*bus, true) >= 0 && p_sd_bus_start(*bus) >= 0;
}

// Prints the value of a key. Returns false if the full program has to do it.
static bool get(const char *identifier, const char *key) {
    sd_bus *bus = NULL;
    sd_bus_message *reply = NULL;
    char user[64], *path = NULL;
    snprintf(user, sizeof user, "/org/example/UbiquitousStore/v1/u%ju", (uintmax_t)geteuid());
    char type;
    const char *contents;
    if (!load() || !open_bus(&bus) || p_sd_bus_path_encode(user, identifier, &path) < 0 ||
        p_sd_bus_call_method(
            bus, "org.example.UbiquitousStore", path, "org.example.UbiquitousStore", "GetValue", NULL, &reply,
            "s", key) < 0)
        return false;
    // What has been printed must not be printed again, however slowly it is read.
    alarm(0);
    if (p_sd_bus_message_peek_type(reply, &type, &contents) <= 0 || type != SD_BUS_TYPE_VARIANT ||
        p_sd_bus_message_enter_container(reply, type, contents) <= 0 || strlen(contents) != 1)
        return false;
    union {
        int64_t integer;
        int truth;
        const char *string;
    } value;
    if (!strchr("xbs", contents[0]) || p_sd_bus_message_read_basic(reply, contents[0], &value) <= 0) return false;
    if (contents[0] == 's' && !is_plain(value.string)) return false;
    int length = contents[0] == 'x' ? printf("%" PRId64 "\n", value.integer)
                                    : puts(contents[0] == 's' ? value.string : value.truth ? "true" : "false");
    return length > 0 && fflush(stdout) == 0;
}

int main(int count, char **arguments) {
    words = arguments;
    const char *identifier = variable("UBIQUITOUS_STORE_IDENTIFIER"), *key = count > 2 ? arguments[count - 1] : "";
    bool named = count == 5 && (!strcmp(arguments[2], "-s") || !strcmp(arguments[2], "--store"));
    if (named) identifier = arguments[3];
    bool is_get = (count == 3 || named) && !strcmp(arguments[1], "get") && is_operand(key) && identifier &&
        is_operand(identifier);
    // If standard output or standard error were closed, the bus connection would get its number.
    for (int stream = 1; is_get && stream < 3; stream++) is_get = fcntl(stream, F_GETFD) >= 0;
    if (is_get) {
        // After a second the full program takes over, because it shows on a terminal that it waits.
        struct sigaction late = {.sa_handler = leave_it, .sa_flags = SA_NODEFER};
        sigaction(SIGALRM, &late, NULL);
        alarm(1);
        signal(SIGPIPE, SIG_IGN);
        if (get(identifier, key)) _exit(0);
    }
    leave_it(0);
}
