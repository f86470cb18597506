/* The data that is sent: whole numbers in doubles that depend on seed, rank and index. Sums over ranks
 * are exact, and what a reduction must yield is known in constant time per element. */
#ifndef MPICOST_PATTERN_H
#define MPICOST_PATTERN_H

#include <stddef.h>
#include <stdint.h>

struct pattern {
    uint64_t seed;
    int processes; /* below 2^20, so that every sum stays below 2^53 */
};

/* Element `index` of what `rank` sends. Never negative. */
double pattern_value(const struct pattern *pattern, int rank, size_t index);

/* Over element `index` of ranks 0 .. ranks - 1. */
double pattern_sum(const struct pattern *pattern, int ranks, size_t index);
double pattern_min(const struct pattern *pattern, int ranks, size_t index);
double pattern_max(const struct pattern *pattern, int ranks, size_t index);

#endif
