#include "pattern.h"

#include "splitmix.h"

/* Element i of rank r is base + step * ((r + shift) mod p), with base, step > 0 and shift drawn from a
 * hash of seed and i. Ranks differ in every element, and which rank holds the least and the greatest
 * value changes from element to element. */
struct terms {
    int64_t base, step, shift;
};

static struct terms terms_at(const struct pattern *pattern, size_t index)
{
    uint64_t hash = splitmix_at(pattern->seed, (uint64_t)index);
    uint64_t shift = ((hash >> 32) * (uint64_t)pattern->processes) >> 32;
    return (struct terms){
        .base = (int64_t)(hash & 0xfffff),
        .step = 1 + (int64_t)((hash >> 20) & 0xff),
        .shift = (int64_t)shift,
    };
}

double pattern_value(const struct pattern *pattern, int rank, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t turn = rank + t.shift;
    if (turn >= pattern->processes)
        turn -= pattern->processes;
    return (double)(t.base + t.step * turn);
}

double pattern_sum(const struct pattern *pattern, int ranks, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t n = ranks, p = pattern->processes;
    int64_t wrapped = t.shift + n - p; /* how many of the ranks have passed p */
    int64_t turns = n * t.shift + n * (n - 1) / 2 - (wrapped > 0 ? wrapped * p : 0);
    return (double)(n * t.base + t.step * turns);
}

double pattern_min(const struct pattern *pattern, int ranks, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t least = t.shift + ranks > pattern->processes ? 0 : t.shift;
    return (double)(t.base + t.step * least);
}

double pattern_max(const struct pattern *pattern, int ranks, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t last = t.shift + ranks - 1;
    int64_t greatest = last < pattern->processes ? last : pattern->processes - 1;
    return (double)(t.base + t.step * greatest);
}
