/* By how much one clock is ahead of another, as measured twice, and expected since. */
#ifndef MPICOST_OFFSET_H
#define MPICOST_OFFSET_H

#include <stdint.h>

/* A clock minus rank 0's, in ns, when that clock showed `when`. */
struct offset {
    int64_t when;
    int64_t value;
    int64_t error; /* bound */
};

/* What the offset is expected to be when the clock shows `now`: the last one measured, and since then the mean
 * rate at which the clocks drifted apart between the first and the last; but none if errors can account for
 * half of what they differ by. So the rate is never more than twice the true one, however poor the measurements. */
int64_t offset_expected(const struct offset *first, const struct offset *last, int64_t now);

#endif
