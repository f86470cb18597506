/* One case, from the first verification to the last, in one visit or several. */
#ifndef MPICOST_MEASUREMENT_H
#define MPICOST_MEASUREMENT_H

#include <stdbool.h>
#include <stdint.h>

#include "buffers.h"
#include "clock.h"
#include "cooling.h"
#include "core_latency.h"
#include "lateness.h"
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
    struct lateness lateness;
    struct device device;
    struct buffers buffers;
    struct trials trials;
};

/* What is known of a case between its visits, and afterwards. The trials themselves are in the bench. */
struct measurement {
    size_t trials;           /* so far */
    struct wrong_data wrong; /* on rank 0: of the lowest rank that received any, in the first visit in which one did */
    bool measured; /* rank 0: a trial is left after the dropped and the late ones */
    struct summary summary; /* rank 0, if measured */
    int64_t *core_latency; /* [2 x rounds], ns; rank 0: before and after each visit */
    size_t calls; /* of a trial: 1 unless it is a loop of them; 0 before the first visit */
    double slowest_mean;    /* s; rank 0: largest of the ranks' mean times, of trials back to back */
};

/* The case as this rank sees it. */
struct exchange measurement_exchange(const struct item *item, int peer, const struct control *control);

/* Trials that run without a decision, after the last of them, whether and how to go on. */
size_t measurement_batch(const struct options *options);

/* Trials of a visit in round `round`, from 0 on. The first rounds have one more where they cannot be shared out. */
size_t measurement_share(const struct options *options, size_t round);

/* A visit: verifies a run on fresh data, times the trials of the round and verifies each, and in the last round
 * verifies a run on other fresh data. A rank that received wrong data names it on standard error, and no later visit
 * looks for more. Of `measurement`, ranks other than 0 have to be told `trials`, `calls` and whether data was wrong.
 * Collective. */
void measurement_visit(struct measurement *measurement, struct bench *bench, const struct item *item,
                       const struct visit *visit, size_t round, uint64_t seed);

/* What the trials of all visits come to. Collective. */
void measurement_finish(struct measurement *measurement, struct bench *bench, const struct item *item, int peer);

#endif
