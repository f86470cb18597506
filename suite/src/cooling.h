/* What happens to the caches before each trial, and the proof that it works. */
#ifndef MPICOST_COOLING_H
#define MPICOST_COOLING_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "control.h"
#include "eviction.h"
#include "flush.h"

enum cache_state {
    CACHE_FLUSH, /* walk more memory than the caches hold: cools MPI's own memory too */
    CACHE_EVICT, /* take the lines of both buffers out of the caches */
    CACHE_WARM,  /* leave the caches as they are */
};

extern const char *const cache_names[];

/* Times in ns, of this rank. */
struct coldness {
    int64_t warm;  /* to read a block that was just read */
    int64_t cold;  /* to read it after cooling */
    int64_t took;  /* cooling; of an eviction, that of the block */
    double ratio;  /* cold over warm, the least of all ranks; 0 if it could not be measured */
};

struct span {
    const void *start;
    size_t bytes;
};

struct cooling {
    enum cache_state state;
    struct flush flush;       /* empty unless state is CACHE_FLUSH */
    struct eviction eviction; /* empty unless state is CACHE_EVICT */
    uint64_t evicted;         /* lines, of this rank until now */
    struct span buffers[2];   /* send and receive buffer of the case at hand, with the guard */
};

/* Cools before a trial, and does nothing if the state is warm. */
void cooling_apply(struct cooling *cooling);

/* Measures how much slower a block is read after cooling than before; zeros if the state is warm. Collective. */
struct coldness cooling_prove(struct cooling *cooling, const struct control *control);

#endif
