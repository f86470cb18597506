/* Which cases are run, and in which order. */
#ifndef MPICOST_PLAN_H
#define MPICOST_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "options.h"
#include "outcome.h"
#include "routine.h"

/* A routine with one of its sizes. Every rank knows all of them. */
struct item {
    const struct routine *routine;
    uint64_t bytes;
};

struct visit {
    size_t item;
    int peer;
};

struct plan {
    struct item *items;
    size_t item_count;
    struct visit *visits; /* the cases; on rank 0 only, because ping-pong has one per rank */
    size_t visit_count;
    size_t item_bytes, visit_bytes; /* allocated */
};

/* Works out the cases that the options ask for, in the order of the table of routines. On rank 0 the
 * outcome also covers the peers. False if something asked for does not exist. */
bool plan_open(struct plan *plan, struct memory *memory, const struct options *options,
               const struct control *control, struct outcome *outcome);
void plan_close(struct plan *plan, struct memory *memory);

/* Puts the cases of rank 0 into a random order that the seed decides. */
void plan_shuffle(struct plan *plan, uint64_t seed);

#endif
