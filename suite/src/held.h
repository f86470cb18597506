/* How a rank was held up in the course of a launch, by the kernel's books: how long it was ready to run and did not, and
 * how often it was switched and interrupted. */
#ifndef MPICOST_HELD_H
#define MPICOST_HELD_H

#include <stdint.h>

#include "noise.h"

enum { HOLDS_KEPT = 8, HOLD_LEAST = 1000000 /* ns between two samples */ };

struct held {
    int file;         /* of the kernel's books; -1 if there are none */
    int64_t began;    /* ns that it had waited when the launch began */
    int64_t last;     /* ns that it had waited at the last sample */
    int64_t voluntary, involuntary, faults; /* at the beginning; after held_close the difference */
    int kept;
    struct detour holds[HOLDS_KEPT]; /* [kept], the longest; `when` in ns of CLOCK_REALTIME */
};

void held_open(struct held *held);

/* Between two visits. Costs one system call. */
void held_sample(struct held *held);

/* ns that this rank was ready to run and did not, since held_open; -1 if the kernel does not tell. Leaves the differences. */
int64_t held_close(struct held *held);

#endif
