/* The timed section. There is one, for every routine. */
#ifndef MPICOST_TIMING_H
#define MPICOST_TIMING_H

#include <stdint.h>

#include "cooling.h"
#include "routine.h"
#include "sync.h"

/* One trial on this rank, stamps in ns of its own clock. */
struct stamps {
    int64_t start;
    int64_t stop;
    bool late; /* missed the start window */
};

/* Runs one trial of the template of Luecke et al. (2001): cool, synchronise, stamp, routine, stamp,
 * barrier. Between the stamps stands the call of the routine, through a pointer, `calls` times, and nothing else.
 * `meet`: what follows the synchronisation, before the first stamp; or NULL. `follows`: the barrier of the
 * trial before it is its synchronisation. Collective. */
struct stamps timing_trial(const struct exchange *exchange, meeting *meet, bool follows, size_t calls,
                           const struct sync *sync, struct cooling *cooling);

#endif
