/* The caches of the CPU that this rank runs on, as the kernel describes them. */
#ifndef MPICOST_CACHES_H
#define MPICOST_CACHES_H

#include <stdint.h>

enum { CACHES_MOST = 8 };

struct cache {
    int level;
    char type[16]; /* "Data", "Instruction" or "Unified" */
    uint64_t bytes;
    char shared_by[1024]; /* CPUs, as "0-3,8" */
};

struct caches {
    int count; /* 0 if the kernel does not say */
    struct cache list[CACHES_MOST];
};

void caches_read(struct caches *caches, int cpu);

/* The last level that holds data, or NULL. */
const struct cache *caches_last(const struct caches *caches);

/* Bytes at `level` that hold data; 0 if there is no such level. */
uint64_t caches_bytes(const struct caches *caches, int level);

#endif
