/* Takes memory out of all caches, line by line, by the processor's own instruction. */
#ifndef MPICOST_EVICTION_H
#define MPICOST_EVICTION_H

#include <stddef.h>

struct eviction {
    const char *instruction; /* its name, such as "clflushopt"; NULL: programs have none here */
    size_t line;             /* bytes of a cache line */
};

/* Finds the instruction of the processor at hand. */
struct eviction eviction_find(void);

/* Writes every line of a block back and takes it out of the caches, and returns when all of them are gone: how many
 * lines. Nothing happens without an instruction. */
size_t eviction_apply(const struct eviction *eviction, const void *block, size_t bytes);

#endif
