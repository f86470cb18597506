/* The trials of one case: stamps of this rank, and what they come to over all ranks. */
#ifndef MPICOST_TRIALS_H
#define MPICOST_TRIALS_H

#include <stddef.h>
#include <stdint.h>

#include "clock.h"
#include "control.h"
#include "memory.h"
#include "timing.h"

struct trials {
    size_t capacity; /* trials of a case at most */
    size_t batch;    /* trials that are reduced together */
    size_t count;    /* trials so far */
    int64_t timed;   /* ns between stamps, of all cases so far, on the slowest rank of each trial; rank 0 */

    struct stamps *stamps;   /* [batch], this rank's */
    int64_t *extremes;       /* [batch], six each */
    int64_t *extremes_work;

    int64_t *own;    /* [capacity], ns between this rank's stamps */
    int64_t *others; /* [capacity], room for those of another rank */

    /* [capacity], in s, on rank 0; ranks that take no part in the case do not count */
    double *t_max;    /* longest local interval */
    double *t_min;    /* shortest local interval */
    double *t_global; /* last stop minus first start, on the common clock */
    double *skew;     /* last start minus first start, on the common clock */
    double *statistics_work; /* [2 x capacity] */
    unsigned char *late;     /* 1: some rank missed the start window */

    void *block;
    size_t bytes;
};

/* Bytes that trials_open will allocate. */
size_t trials_needed(size_t capacity, size_t batch);

/* False if there is no memory. */
bool trials_open(struct trials *trials, struct memory *memory, size_t capacity, size_t batch);
void trials_close(struct trials *trials, struct memory *memory);

/* Appends the first `count` stamps of all ranks to the trials on rank 0. `takes_part`: whether this
 * rank's stamps count. `legs`: messages, or calls, one after the other in a trial; intervals are divided by it.
 * Collective. */
void trials_append(struct trials *trials, const struct control *control, const struct clock *clock,
                   size_t count, bool takes_part, int legs);

#endif
