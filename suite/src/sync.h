/* What brings the ranks together before a trial, and apart from the next one after it. */
#ifndef MPICOST_SYNC_H
#define MPICOST_SYNC_H

#include <stdbool.h>

#include "clock.h"
#include "options.h"
#include "world.h"

struct sync {
    enum sync_kind kind;
    const struct control *control;
    const struct clock *clock;
    int64_t slack; /* ns from announcing a start window to its opening; only rank 0's counts */
    int64_t least; /* ns, of slack */
};

/* `clock` must stay where it is. Collective. */
void sync_open(struct sync *sync, enum sync_kind kind, const struct world *world,
               const struct clock *clock);

/* Returns at about the same time on all ranks; true if this rank missed the start window. Collective. */
bool sync_start(const struct sync *sync);

/* Returns on no rank before every rank has called it. Collective. */
void sync_end(const struct sync *sync);

/* Returns on no rank before every rank has called it. A rank that parks sleeps meanwhile, so that it takes nothing
 * from those that are still timed. Collective. */
void sync_park(const struct sync *sync, bool parks);

/* Fits the time between announcement and opening to whether a rank missed the last window. Rank 0. */
void sync_adapt(struct sync *sync, bool late);

#endif
