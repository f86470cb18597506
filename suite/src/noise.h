/* What takes the processor away from a rank that only computes: the same piece of work again and again, each timed (Sottile
 * and Minnich, 2004, "fixed work quanta"). */
#ifndef MPICOST_NOISE_H
#define MPICOST_NOISE_H

#include <stdint.h>

enum {
    NOISE_SPAN = 40000000, /* ns */
    DETOURS_KEPT = 12,
    DETOURS_TELL = 200, /* a rank that lost less than this part of its time tells no list */
};

/* A piece of work that took more than twice the fastest. */
struct detour {
    int64_t when; /* ns since the probe began, when it was over */
    int64_t took; /* ns more than the fastest */
};

struct noise {
    int64_t quantum; /* ns of the fastest piece */
    int64_t span;    /* ns from the first to the last */
    int64_t lost;    /* ns of all detours */
    int64_t longest; /* ns */
    int kept;
    struct detour longest_of_all[DETOURS_KEPT]; /* [kept], in order of time */
};

/* Of this rank, on the processor where it is. Takes NOISE_SPAN. */
void noise_probe(struct noise *noise);

/* Puts a detour into a list of at most `room` ones in order of time, or the shortest out if it is full. Returns how many
 * there are then. */
int noise_keep(struct detour *list, int kept, int room, struct detour detour);

#endif
