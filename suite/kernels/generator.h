/* The linear congruential generator that java.util.Random is specified to be, by which the kernels draw their data. */
#ifndef MPICOST_GENERATOR_H
#define MPICOST_GENERATOR_H

#include <stdint.h>

struct generator {
    uint64_t state; /* 48 bits */
};

static const uint64_t GENERATOR_FACTOR = 0x5DEECE66D, GENERATOR_MASK = ((uint64_t)1 << 48) - 1;

static inline struct generator generator_open(uint64_t seed)
{
    return (struct generator){(seed ^ GENERATOR_FACTOR) & GENERATOR_MASK};
}

/* The upper bits of the next state. */
static inline uint64_t generator_bits(struct generator *generator, int bits)
{
    generator->state = (generator->state * GENERATOR_FACTOR + 11) & GENERATOR_MASK;
    return generator->state >> (48 - bits);
}

static inline int32_t generator_int(struct generator *generator)
{
    return (int32_t)(uint32_t)generator_bits(generator, 32);
}

/* From 0 to below 1, of two steps. */
static inline double generator_double(struct generator *generator)
{
    uint64_t upper = generator_bits(generator, 26) << 27;
    return (double)(upper + generator_bits(generator, 27)) / (double)((uint64_t)1 << 53);
}

#endif
