/* Which cases are run, and in which order. */
#ifndef MPICOST_PLAN_H
#define MPICOST_PLAN_H

#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "options.h"
#include "outcome.h"
#include "routine.h"

enum { ITEM_NAME = 64 };

/* A routine with one of its sizes and the memory of its buffers. Every rank knows all of them. */
struct item {
    const struct routine *routine;
    uint64_t bytes;
    bool placed; /* whether it says where its buffers lie */
    enum memory_kind send, receive;
    char name[ITEM_NAME]; /* of the routine, and where its buffers lie if it says so: "bcast.DD" */
};

struct visit {
    size_t item;
    int peer;
    size_t number; /* of the case: its place in the first round */
    size_t played; /* of a round of a tournament: its number among those, from 1; else 0 */
};

struct plan {
    struct item *items;
    size_t item_count;
    struct visit *visits; /* the cases in the order of the round; on rank 0 only, because ping-pong has one per rank */
    size_t visit_count;
    size_t played; /* cases that are rounds of a tournament; every rank knows */
    size_t item_bytes, visit_bytes; /* allocated */
};

/* Works out the cases that the options ask for, in the order of the table of routines. On rank 0 the
 * outcome also covers the peers. False if something asked for does not exist. */
bool plan_open(struct plan *plan, struct memory *memory, const struct options *options,
               const struct control *control, struct outcome *outcome);
void plan_close(struct plan *plan, struct memory *memory);

/* Whether an application kernel is among the items. */
bool plan_has_kernels(const struct plan *plan);

/* Whether the items say where their buffers lie: all do, or none. */
bool plan_is_placed(const struct plan *plan);

/* Puts the cases of rank 0 into a random order that seed and round decide; `round` from 0 on, in turn. */
void plan_shuffle(struct plan *plan, uint64_t seed, size_t round);

#endif
