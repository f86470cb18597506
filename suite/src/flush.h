/* The flush array: touched before each trial, so that no trial finds its data in a cache. */
#ifndef MPICOST_FLUSH_H
#define MPICOST_FLUSH_H

#include <stdint.h>

#include "caches.h"
#include "memory.h"
#include "world.h"

struct flush {
    uint64_t *words;
    size_t bytes; /* 0 with warm caches */
};

/* Bytes that each rank must touch, the same on all: ceil(2 x last-level cache / ranks that share it) plus
 * 2 x the private second level; the largest of all ranks. 0 if a rank does not know its caches. Collective. */
uint64_t flush_needed(const struct world *world, const struct caches *caches);

/* False if there is no memory. */
bool flush_open(struct flush *flush, struct memory *memory, uint64_t bytes);
void flush_close(struct flush *flush, struct memory *memory);

/* Adds one to one word of every 64 bytes. */
void flush_touch(struct flush *flush);

/* The sum of all words: number of lines x number of touches, if every touch was carried out. */
uint64_t flush_sum(const struct flush *flush);

#endif
