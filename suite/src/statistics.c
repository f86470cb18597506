#include "statistics.h"

#include <math.h>
#include <stdlib.h>

static const double SPIKE_FACTOR = 1.8;
static const double GAP_IN_DEVIATIONS = 3.0;
static const double GAP_IN_RESOLUTIONS = 2.0;
enum { CAP_DIVISOR = 10, SIDE_DIVISOR = 5, QUARTER = 4 };

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static void sort(double *values, size_t count)
{
    qsort(values, count, sizeof *values, compare);
}

static double median_of(const double *sorted, size_t count)
{
    size_t middle = count / 2;
    return count % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

static double quantile(const double *sorted, size_t count, double share)
{
    double place = (double)(count - 1) * share;
    size_t below = (size_t)place;
    if (below + 1 >= count)
        return sorted[count - 1];
    return sorted[below] + (place - (double)below) * (sorted[below + 1] - sorted[below]);
}

static double mean_of(const double *values, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

static double standard_error(const double *values, size_t count, double mean)
{
    if (count < 2)
        return INFINITY;
    double squares = 0;
    for (size_t i = 0; i < count; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    return sqrt(squares / (double)(count - 1) / (double)count);
}

static size_t count_above(const double *sorted, size_t count, double limit)
{
    size_t above = 0;
    while (above < count && sorted[count - 1 - above] > limit)
        above++;
    return above;
}

static double widest_inner_gap(const double *sorted, size_t count)
{
    size_t side = (count + SIDE_DIVISOR - 1) / SIDE_DIVISOR;
    double widest = 0;
    for (size_t right = side; right + side <= count; right++)
        widest = fmax(widest, sorted[right] - sorted[right - 1]);
    return widest;
}

static double median_absolute_deviation(const double *sorted, size_t count, double median, double *work)
{
    for (size_t i = 0; i < count; i++)
        work[i] = fabs(sorted[i] - median);
    sort(work, count);
    return median_of(work, count);
}

static size_t collect(const double *trials, const unsigned char *late, size_t count, size_t dropped,
                      double *values)
{
    size_t collected = 0;
    for (size_t i = dropped; i < count; i++)
        if (!late[i])
            values[collected++] = trials[i];
    return collected;
}

bool statistics_summarise(struct summary *summary, const double *trials, const unsigned char *late,
                          size_t count, size_t dropped, double resolution, double *work)
{
    size_t m = collect(trials, late, count, dropped, work);
    if (m == 0)
        return false;
    sort(work, m);
    double median = median_of(work, m);
    double deviation = median_absolute_deviation(work, m, median, work + m);
    size_t candidates = count_above(work, m, SPIKE_FACTOR * median);
    size_t removed = candidates < m / CAP_DIVISOR ? candidates : m / CAP_DIVISOR;
    double headline = mean_of(work, m - removed);
    double limit = fmax(GAP_IN_DEVIATIONS * deviation, GAP_IN_RESOLUTIONS * resolution);
    *summary = (struct summary){
        .headline = headline,
        .steady = mean_of(work, (m + QUARTER - 1) / QUARTER),
        .median = median,
        .minimum = work[0],
        .p90 = quantile(work, m, 0.90),
        .p99 = quantile(work, m, 0.99),
        .standard_error = standard_error(work, m - removed, headline),
        .kept = m - removed,
        .candidates = candidates,
        .removed = removed,
        .filter_saturated = candidates > removed,
        .bimodal = widest_inner_gap(work, m) > limit,
    };
    return true;
}
