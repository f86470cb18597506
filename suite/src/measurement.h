/* One case, from the first verification to the last. */
#ifndef MPICOST_MEASUREMENT_H
#define MPICOST_MEASUREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"
#include "clock.h"
#include "cooling.h"
#include "core_latency.h"
#include "options.h"
#include "plan.h"
#include "statistics.h"
#include "sync.h"
#include "trials.h"
#include "world.h"
#include "wrong_data.h"

enum { DROPPED = 1 }; /* trials left out of the statistics, at the beginning */

/* Everything that cases share. */
struct bench {
    const struct options *options;
    const struct world *world;
    struct clock clock;
    struct sync sync;
    struct cooling cooling;
    struct coldness coldness;
    struct core_latency cores;
    struct buffers buffers;
    struct trials trials;
};

/* What is known of a case afterwards. The trials themselves are in the bench. */
struct measurement {
    struct wrong_data wrong; /* on rank 0: of the lowest rank that received any */
    bool measured; /* rank 0: a trial is left after the dropped and the late ones */
    struct summary summary; /* rank 0, if measured */
    int64_t core_latency[2]; /* ns; rank 0: before and after the case */
    size_t calls;           /* of a trial: 1 unless it is a loop of them */
    double slowest_mean;    /* s; rank 0: largest of the ranks' mean times, of trials back to back */
};

/* The case as this rank sees it. */
struct exchange measurement_exchange(const struct item *item, int peer, const struct control *control);

/* Trials that run without a decision, after the last of them, whether and how to go on. */
size_t measurement_batch(const struct options *options);

/* Verifies a run on fresh data, times the trials and verifies each, and verifies a run on other fresh
 * data. A rank that received wrong data names it on standard error.
 * Collective. */
struct measurement measurement_run(struct bench *bench, const struct item *item, int peer, uint64_t seed);

#endif
