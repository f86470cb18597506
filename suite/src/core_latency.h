/* How far apart the cores of neighbouring ranks are: the time in which a word written by one is read by the other,
 * through memory that both map and without MPI. It tells a launch whose ranks were moved, by the kernel or
 * below a virtual machine, from a slow MPI. */
#ifndef MPICOST_CORE_LATENCY_H
#define MPICOST_CORE_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "world.h"

enum { CORE_LATENCY_UNKNOWN = -1 };

struct core_words;

struct core_latency {
    struct core_words *host; /* of all pairs of the host; NULL if there are none */
    size_t pairs;
    struct core_words *pair; /* of this rank and its neighbour; NULL if it has none */
    bool first;    /* of the two */
    bool anywhere; /* whether any two ranks of the world are neighbours */
    int64_t trips; /* made until now */
};

/* Maps memory for each two ranks of a host: the first and second, the third and fourth, and so on. Where the host
 * lets them share none, and in simulated time, nobody has a neighbour. Collective. */
void core_latency_open(struct core_latency *cores, const struct world *world);
void core_latency_close(struct core_latency *cores);

/* Nanoseconds from core to core, of the slowest pair, on rank 0. CORE_LATENCY_UNKNOWN without neighbours, and if no two
 * of them ran at the same time. Collective. */
int64_t core_latency_measure(struct core_latency *cores, const struct world *world);

#endif
