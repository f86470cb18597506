/* SplitMix64 (Steele, Lea and Flood, 2014): the n-th number of the sequence that a seed starts. */
#ifndef MPICOST_SPLITMIX_H
#define MPICOST_SPLITMIX_H

#include <stdint.h>

static inline uint64_t splitmix_at(uint64_t seed, uint64_t n)
{
    uint64_t x = seed + 0x9e3779b97f4a7c15u * (n + 1);
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

#endif
