/* The clock: nanoseconds of CLOCK_MONOTONIC, which all ranks of a host share, and what must be added to
 * rank 0's reading to get this rank's. */
#ifndef MPICOST_CLOCK_H
#define MPICOST_CLOCK_H

#include <stdint.h>
#include <time.h>

#include "world.h"

#define CLOCK_SOURCE "CLOCK_MONOTONIC"

struct clock {
    int64_t resolution; /* ns: the smallest step seen; the largest of all ranks */
    int64_t overhead;   /* ns: one reading, rounded up; the largest of all ranks */
    double overhead_mean; /* the same in s, not rounded */
    int64_t offset;     /* ns: this rank's clock minus rank 0's */
    int64_t error;      /* ns: bound on the offset's error, largest of all hosts; 0 on one host */
};

static inline int64_t clock_now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static inline double seconds(int64_t nanoseconds)
{
    return (double)nanoseconds / 1e9;
}

/* Measures resolution and overhead, and the offsets. Collective. */
void clock_open(struct clock *clock, const struct world *world);

/* Measures the offsets again, because clocks drift. Collective; does nothing on one host. */
void clock_synchronise(struct clock *clock, const struct world *world);

#endif
