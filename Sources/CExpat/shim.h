// SPDX-License-Identifier: Apache-2.0
#ifndef CEXPAT_SHIM_H
#define CEXPAT_SHIM_H

#include <expat.h>
#include <malloc.h>
#include <stdlib.h>

/* What a parser has allocated, and may allocate, in bytes. expat keeps every name that it has seen. */
struct shim_memory {
    size_t used;
    size_t most;
};

/* expat passes nothing of its caller's to the functions for memory, so the parser that is at work is the thread's. */
static inline struct shim_memory **shim_at_work(void) {
    static _Thread_local struct shim_memory *memory;
    return &memory;
}

static inline void *shim_reallocate(void *old, size_t size) {
    struct shim_memory *memory = *shim_at_work();
    size_t before = old ? malloc_usable_size(old) : 0;
    if (size > memory->most || memory->used - before > memory->most - size) return NULL;
    void *new = realloc(old, size);
    if (new) memory->used += malloc_usable_size(new) - before;
    return new;
}

static inline void *shim_allocate(size_t size) { return shim_reallocate(NULL, size); }

static inline void shim_release(void *old) {
    if (old) (*shim_at_work())->used -= malloc_usable_size(old);
    free(old);
}

/* XML_ParserCreateNS, XML_Parse and XML_ParserFree with bounded memory. No other function that is used allocates. */
static inline XML_Parser shim_create(struct shim_memory *memory, XML_Char separator) {
    const XML_Memory_Handling_Suite suite = {shim_allocate, shim_reallocate, shim_release};
    *shim_at_work() = memory;
    return XML_ParserCreate_MM(NULL, &suite, &separator);
}

static inline enum XML_Status shim_parse(
    XML_Parser parser, struct shim_memory *memory, const char *text, int count, int is_last
) {
    *shim_at_work() = memory;
    return XML_Parse(parser, text, count, is_last);
}

static inline void shim_free(XML_Parser parser, struct shim_memory *memory) {
    *shim_at_work() = memory;
    XML_ParserFree(parser);
}

#endif
