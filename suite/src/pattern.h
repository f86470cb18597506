/* The data that is sent: numbers that depend on seed, rank, index and turn. What a reduction must yield is exact, and
 * known in constant time per element. */
#ifndef MPICOST_PATTERN_H
#define MPICOST_PATTERN_H

#include <stddef.h>
#include <stdint.h>

enum data {
    DATA_BITS,  /* doubles of which every bit is drawn, those of sign and exponent too; none is above 2^257 */
    DATA_SUMS,  /* whole numbers whose sum is exact, and so large that its lowest bit is that of a double */
    DATA_ORDER, /* doubles from 1 to 2 of which every bit of the mantissa counts */
    DATA_BYTES, /* bytes from 0 to 254 */
};

struct pattern {
    enum data data;
    uint64_t seed;
    int processes; /* at most 2^20 */
    int addends;   /* of a sum at most */
    uint64_t key;  /* of this turn: what it makes of the first turn's data */
};

/* Data for so many addends at most. Turn 0. */
struct pattern pattern_open(enum data data, uint64_t seed, int processes, int addends);

/* The same data in another turn: every element differs from that of the turn before. */
struct pattern pattern_turn(const struct pattern *pattern, uint64_t turn);

/* Takes `count` elements from one turn to another, where they lie. What was damaged stays damaged. */
void pattern_renew(const struct pattern *from, const struct pattern *to, void *elements, size_t count);

/* Adds to `count` numbers. */
void pattern_raise(double more, double *numbers, size_t count);

/* Element `index` of what `rank` sends. */
double pattern_value(const struct pattern *pattern, int rank, size_t index);

/* Over element `index` of ranks 0 .. ranks - 1. */
double pattern_sum(const struct pattern *pattern, int ranks, size_t index);
double pattern_min(const struct pattern *pattern, int ranks, size_t index);
double pattern_max(const struct pattern *pattern, int ranks, size_t index);

#endif
