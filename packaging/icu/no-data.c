// SPDX-License-Identifier: Apache-2.0

// Foundation includes ICU, with 34 MB of data about languages and calendars: half of the program, and unused here. With
// --wrap=icudt76_dat this replaces the data: a table of contents without entries, as ICU documents it for programs that
// provide no data (udata.h, "ToCP"). The symbol contains ICU's version; with another toolchain, the program is just
// larger.

#include <stdint.h>

const struct {
    uint16_t header_size;
    uint8_t magic[2];
    uint16_t info_size, reserved;
    uint8_t is_big_endian, charset_family, char_size, padding;
    uint8_t format[4], format_version[4], data_version[4];
    uint8_t alignment[8];
    uint32_t entries, first_entry;
} __wrap_icudt76_dat = {
    .header_size = 32,
    .magic = {0xda, 0x27},
    .info_size = 20,
    .char_size = 2,
    .format = "ToCP",
    .format_version = {1},
};
