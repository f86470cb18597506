/* The trials: stamps of this rank, and what they come to over all ranks. Those of all cases are kept, since a case
 * has its trials in several visits. */
#ifndef MPICOST_TRIALS_H
#define MPICOST_TRIALS_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "control.h"
#include "memory.h"
#include "timing.h"

/* What there must be room for, on this rank. */
struct room {
    size_t capacity; /* trials of a case at most */
    size_t batch;    /* trials that are reduced together */
    size_t cases;    /* whose trials are kept: all on rank 0, none on the others */
    size_t played;   /* cases of which each rank keeps its own intervals: the rounds of a tournament */
};

struct trials {
    struct room room;
    size_t count;    /* trials so far, of the case at hand */
    int64_t timed;   /* ns between stamps, of all cases so far, on the slowest rank of each trial; rank 0 */

    struct stamps *stamps;   /* [batch], this rank's */
    int64_t *extremes;       /* [batch], six each */
    int64_t *extremes_work;

    int64_t *own;    /* [capacity], ns between this rank's stamps, of the case at hand */
    int64_t *others; /* [capacity], room for those of another rank */

    /* [capacity], of the case at hand, in s, on rank 0; ranks that take no part in the case do not count */
    double *t_max;    /* longest local interval */
    double *t_min;    /* shortest local interval */
    double *t_global; /* last stop minus first start, on the common clock */
    double *skew;     /* last start minus first start, on the common clock */
    double *statistics_work; /* [2 x capacity] */
    unsigned char *late;     /* 1: some rank missed the start window */

    /* of all cases */
    int64_t *own_of_played; /* [1 + played][capacity]; the first is that of all other cases */
    double *times_of_cases; /* [cases][4][capacity] */
    unsigned char *late_of_cases;

    void *block;
    size_t bytes;
};

/* Bytes that trials_open will allocate; false if they do not fit into size_t. */
bool trials_needed(const struct room *room, size_t *bytes);

/* False if there is no memory. */
bool trials_open(struct trials *trials, struct memory *memory, const struct room *room);
void trials_close(struct trials *trials, struct memory *memory);

/* Turns to a case, of which there are `count` trials. `played`: its number among the rounds of a tournament, or 0. */
void trials_select(struct trials *trials, size_t number, size_t played, size_t count);

/* Appends the first `count` stamps of all ranks to the trials on rank 0. `takes_part`: whether this
 * rank's stamps count. `legs`: messages, or calls, one after the other in a trial; intervals are divided by it.
 * Collective. */
void trials_append(struct trials *trials, const struct control *control, const struct clock *clock,
                   size_t count, bool takes_part, int legs);

/* Of the `count` trials that were appended last, ns on the common clock when the last rank began each: on rank 0; on
 * the others room for them. */
int64_t *trials_last_starts(struct trials *trials, size_t count);

#endif
