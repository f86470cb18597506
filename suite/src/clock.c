#include "clock.h"

#include <stdlib.h>
#include <string.h>

enum { READINGS = 200, BATCHES = 5, ROUND_TRIPS = 30 };

/* ns. Crystals differ by up to 1e-4: that is 1 us before the rate is known. Afterwards it stays, for a second,
 * what it was. */
enum { TRUSTED_LEAST = 10000000, TRUSTED_MOST = 1000000000 };

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* The smallest difference between two steps of the clock, or between a step and none: where one reading
 * takes longer than a tick, the steps themselves are no measure of it. */
static int64_t smallest_step(int64_t *steps, int count)
{
    qsort(steps, (size_t)count, sizeof *steps, compare);
    int64_t smallest = 0, previous = 0;
    for (int i = 0; i < count; i++) {
        int64_t difference = steps[i] - previous;
        if (difference > 0 && (smallest == 0 || difference < smallest))
            smallest = difference;
        previous = steps[i];
    }
    return smallest;
}

static int64_t measure_resolution(void)
{
    int64_t steps[READINGS];
    int64_t before = clock_now();
    for (int i = 0; i < READINGS; i++) {
        int64_t now = clock_now();
        steps[i] = now - before;
        before = now;
    }
    int64_t smallest = smallest_step(steps, READINGS);
    if (smallest > 0)
        return smallest;
    struct timespec nominal; /* the clock did not tick once */
    clock_getres(CLOCK_MONOTONIC, &nominal);
    return (int64_t)nominal.tv_sec * 1000000000 + nominal.tv_nsec;
}

/* ns per READINGS readings, in the best of some batches. */
static int64_t measure_overhead(void)
{
    int64_t best = INT64_MAX;
    for (int batch = 0; batch < BATCHES; batch++) {
        int64_t start = clock_now();
        for (int i = 1; i < READINGS; i++)
            (void)clock_now();
        int64_t elapsed = clock_now() - start;
        best = elapsed < best ? elapsed : best;
    }
    return best;
}

int64_t clock_offset(const struct clock *clock, int64_t now)
{
    return offset_expected(&clock->first, &clock->last, now);
}

/* An offset as it travels, with the bound on its error. */
enum { WHEN, VALUE, ERROR, MEASURED };

/* The side of the one that knows its own offset: the reply of the fastest round trip is taken to have been
 * stamped half-way (Cristian, 1989). Half that trip bounds the error, to which our own is added. */
static void measure(const struct clock *clock, int64_t own_error, const struct control *leaders, int leader)
{
    int64_t shortest = INT64_MAX, result[MEASURED];
    for (int i = 0; i < ROUND_TRIPS; i++) {
        int64_t theirs, start = clock_now();
        MPI_Send(&start, 1, MPI_INT64_T, leader, TAG_CLOCK, leaders->comm);
        MPI_Recv(&theirs, 1, MPI_INT64_T, leader, TAG_CLOCK, leaders->comm, MPI_STATUS_IGNORE);
        int64_t trip = clock_now() - start;
        if (trip >= shortest)
            continue;
        int64_t middle = start + trip / 2;
        shortest = trip;
        result[WHEN] = theirs;
        result[VALUE] = theirs - middle + clock_offset(clock, middle);
        result[ERROR] = (trip + 1) / 2 + own_error;
    }
    MPI_Send(result, MEASURED, MPI_INT64_T, leader, TAG_CLOCK, leaders->comm);
}

static void answer(int64_t *result, const struct control *leaders, int parent)
{
    int64_t message;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        MPI_Recv(&message, 1, MPI_INT64_T, parent, TAG_CLOCK, leaders->comm, MPI_STATUS_IGNORE);
        message = clock_now();
        MPI_Send(&message, 1, MPI_INT64_T, parent, TAG_CLOCK, leaders->comm);
    }
    MPI_Recv(result, MEASURED, MPI_INT64_T, parent, TAG_CLOCK, leaders->comm, MPI_STATUS_IGNORE);
}

/* Takes over a measured offset and returns by how much it missed the one expected. */
static int64_t adopt(struct clock *clock, const int64_t *result)
{
    int64_t missed = clock->known ? result[VALUE] - clock_offset(clock, result[WHEN]) : 0;
    clock->last = (struct offset){result[WHEN], result[VALUE], result[ERROR]};
    if (!clock->known)
        clock->first = clock->last;
    clock->known = true;
    return missed < 0 ? -missed : missed;
}

/* Along the binomial tree of the first ranks of all hosts: each is measured by its parent and then measures its
 * children, so that rank 0 has log2 of the hosts to measure, not all. */
static int64_t synchronise_hosts(struct clock *clock, const struct control *leaders, int64_t *result)
{
    int distance = control_distance(leaders);
    if (leaders->rank == 0)
        *result = clock_now();
    else
        answer(result, leaders, leaders->rank - distance);
    int64_t missed = adopt(clock, result);
    while ((distance /= 2) > 0)
        if (leaders->rank + distance < leaders->size)
            measure(clock, result[ERROR], leaders, leaders->rank + distance);
    return missed;
}

void clock_synchronise(struct clock *clock, const struct world *world)
{
    if (!clock->common)
        return;
    int64_t result[MEASURED] = {0};
    bool leads = world->host.rank == 0;
    int64_t missed = leads ? synchronise_hosts(clock, &world->leaders, result) : 0;
    control_broadcast(&world->host, result, MEASURED);
    if (!leads)
        missed = adopt(clock, result);
    int64_t work[2], worst[2] = {result[ERROR], missed};
    control_maximum(&world->control, worst, work, 2);
    clock->error = worst[0];
    clock->deviation = worst[1] > clock->deviation ? worst[1] : clock->deviation;
}

int64_t clock_uncertainty(const struct clock *clock, const struct world *world)
{
    if (world->hosts > 1 && !clock->common)
        return -1;
    return clock->common ? 2 * (clock->error + clock->deviation) + clock->resolution : 0;
}

bool clock_is_due(const struct clock *clock)
{
    int64_t trusted = clock->last.when - clock->first.when;
    trusted = trusted < TRUSTED_LEAST ? TRUSTED_LEAST : trusted > TRUSTED_MOST ? TRUSTED_MOST : trusted;
    return clock->common && clock_now() - clock->last.when >= trusted;
}

void clock_open(struct clock *clock, const struct world *world, bool compared)
{
    *clock = (struct clock){.common = compared && world->hosts > 1};
    int64_t batch = control_all_maximum(&world->control, measure_overhead());
    clock->overhead = (batch + READINGS - 1) / READINGS;
    clock->overhead_mean = seconds(batch) / READINGS;
    clock->resolution = control_all_maximum(&world->control, measure_resolution());
    clock_synchronise(clock, world);
}
