/* The papers' statistic of the trials of a case, and what is recorded beside it. */
#ifndef MPICOST_STATISTICS_H
#define MPICOST_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>

struct summary {
    double headline; /* mean of what the filter leaves */
    double steady;   /* mean of the fastest quarter */
    double median;
    double minimum;
    double p90, p99;       /* linear between order statistics (Hyndman and Fan's type 7) */
    double standard_error; /* of the headline, within this launch; infinite for one value */
    size_t kept, candidates, removed;
    bool filter_saturated; /* more candidates than may be removed */
    bool bimodal;
};

/* Summary of the `count` trials without the first `dropped` and without those marked in `late`, by Luecke
 * et al. (2001): of the m values left, those above 1.8 times their median are candidates, and the largest
 * floor(m / 10) of the candidates at most are removed. `bimodal`: a gap between neighbours, with a fifth
 * of the values on each side, exceeds 3 median absolute deviations and 2 x `resolution`.
 * `work` holds 2 x `count` values. Times in any one unit. False if m = 0. */
bool statistics_summarise(struct summary *summary, const double *trials, const unsigned char *late,
                          size_t count, size_t dropped, double resolution, double *work);

#endif
