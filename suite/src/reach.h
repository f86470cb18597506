/* How far each host is from others: it plays ping-pong with a few of them, one at a time. One whose own link is slow is far
 * from all of them; its partners are far from it alone. */
#ifndef MPICOST_REACH_H
#define MPICOST_REACH_H

#include <stdint.h>

#include "control.h"

enum { REACH_ROUNDS = 9, REACH_HOSTS = 4 /* at least */, REACH_SIZES = 2, REACH_SMALL = 8, REACH_LARGE = 32768 };

/* ns of a round trip with each partner in turn, fastest of some, for each size; 0 where it had none. */
struct reach {
    int64_t trips[REACH_ROUNDS][REACH_SIZES];
};

/* `leaders`: the first ranks of all hosts, of which this is one. `seed`, the same on all of them, chooses the partners. Needs
 * REACH_HOSTS of them. Collective. */
void reach_measure(struct reach *reach, const struct control *leaders, uint64_t seed);

/* The median over the partners, in ns. */
int64_t reach_median(const struct reach *reach, int size);

#endif
