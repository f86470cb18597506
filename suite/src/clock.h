/* The clock: nanoseconds of CLOCK_MONOTONIC, which all ranks of a host share, and what must be added to
 * rank 0's reading to get this rank's. */
#ifndef MPICOST_CLOCK_H
#define MPICOST_CLOCK_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "offset.h"
#include "world.h"

#define CLOCK_SOURCE "CLOCK_MONOTONIC"

struct clock {
    int64_t resolution; /* ns: the smallest step seen; the largest of all ranks */
    int64_t overhead;   /* ns: one reading, rounded up; the largest of all ranks */
    double overhead_mean; /* the same in s, not rounded */
    bool common;       /* ranks on several hosts need one time: offsets are measured */
    bool known;        /* and have been */
    struct offset first, last; /* measured, of this rank's clock */
    int64_t error;     /* ns: bound on the error of the offset last measured, largest of all hosts; rank 0 */
    int64_t deviation; /* ns: by which a measured offset missed the one expected, at most so far; rank 0 */
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

/* Measures resolution and overhead, and the offsets if times of several ranks will be compared. Collective. */
void clock_open(struct clock *clock, const struct world *world, bool compared);

/* On rank 0: ns by which two times of different ranks may be wrong beside each other; -1 if they tell nothing. */
int64_t clock_uncertainty(const struct clock *clock, const struct world *world);

/* Measures the offsets again, because clocks drift. Collective; does nothing where nobody needs them. */
void clock_synchronise(struct clock *clock, const struct world *world);

/* On rank 0: whether the offsets ought to be measured again. They are trusted for as long as there was between
 * the first measurement and the last, within limits: then the error of the rate adds about as much as their own. */
bool clock_is_due(const struct clock *clock);

/* This rank's clock minus rank 0's when this rank's shows `now`, in ns, as offset.h has it. */
int64_t clock_offset(const struct clock *clock, int64_t now);

#endif
