/* Brings what every rank has to say to rank 0, in the order of ranks, along the tree of control.h. Messages are put
 * together on the way and cut to one length, so that rank 0 receives few and no rank needs memory for many. */
#ifndef MPICOST_GATHER_H
#define MPICOST_GATHER_H

#include <stddef.h>

#include "control.h"

enum { GATHER_BYTES = 1 << 15 }; /* of a message at most */

struct gather {
    const struct control *control;
    int distance; /* to the child whose bytes are in `in`; 0 before the first */
    size_t filled, taken; /* bytes of `in` */
    size_t pending;       /* bytes of `out` */
    char in[GATHER_BYTES], out[GATHER_BYTES];
};

void gather_open(struct gather *gather, const struct control *control);

/* On all ranks but 0: what this rank contributes, in any number of pieces, and its end. */
void gather_put(struct gather *gather, const void *data, size_t bytes);
void gather_finish(struct gather *gather);

/* On rank 0: the next `bytes` bytes of the contributions of ranks 1, 2, ... There must be as many. */
void gather_get(struct gather *gather, void *data, size_t bytes);

/* On rank 0, when it has got all. */
void gather_close(struct gather *gather);

#endif
