#include "clock.h"

#include <stdlib.h>

enum { READINGS = 1000, BATCHES = 10, ROUND_TRIPS = 30, TAG_CLOCK = 1 };

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

/* Rank 0's side: the reply of the fastest round trip is taken to have been stamped half-way (Cristian,
 * 1989). Sends the leader its offset and the bound on its error, half the round trip. */
static int64_t measure_offset(MPI_Comm leaders, int leader)
{
    int64_t result[2] = {0, INT64_MAX}; /* offset, shortest round trip */
    for (int i = 0; i < ROUND_TRIPS; i++) {
        int64_t theirs, start = clock_now();
        MPI_Send(&start, 1, MPI_INT64_T, leader, TAG_CLOCK, leaders);
        MPI_Recv(&theirs, 1, MPI_INT64_T, leader, TAG_CLOCK, leaders, MPI_STATUS_IGNORE);
        int64_t trip = clock_now() - start;
        if (trip < result[1]) {
            result[0] = theirs - (start + trip / 2);
            result[1] = trip;
        }
    }
    MPI_Send(&result[0], 1, MPI_INT64_T, leader, TAG_CLOCK, leaders);
    return (result[1] + 1) / 2;
}

static int64_t answer(MPI_Comm leaders)
{
    int64_t message;
    for (int i = 0; i < ROUND_TRIPS; i++) {
        MPI_Recv(&message, 1, MPI_INT64_T, 0, TAG_CLOCK, leaders, MPI_STATUS_IGNORE);
        message = clock_now();
        MPI_Send(&message, 1, MPI_INT64_T, 0, TAG_CLOCK, leaders);
    }
    MPI_Recv(&message, 1, MPI_INT64_T, 0, TAG_CLOCK, leaders, MPI_STATUS_IGNORE);
    return message;
}

void clock_synchronise(struct clock *clock, const struct world *world)
{
    if (world->hosts == 1)
        return;
    int64_t error = 0;
    if (world->control.rank == 0)
        for (int leader = 1; leader < world->hosts; leader++) {
            int64_t half_trip = measure_offset(world->leaders, leader);
            error = half_trip > error ? half_trip : error;
        }
    else if (world->host_rank == 0)
        clock->offset = answer(world->leaders);
    if (world->host_rank == 0)
        for (int rank = 1; rank < world->host_size; rank++)
            MPI_Send(&clock->offset, 1, MPI_INT64_T, rank, TAG_CLOCK, world->host);
    else
        MPI_Recv(&clock->offset, 1, MPI_INT64_T, 0, TAG_CLOCK, world->host, MPI_STATUS_IGNORE);
    clock->error = control_all_maximum(&world->control, error);
}

void clock_open(struct clock *clock, const struct world *world)
{
    *clock = (struct clock){0};
    int64_t batch = control_all_maximum(&world->control, measure_overhead());
    clock->overhead = (batch + READINGS - 1) / READINGS;
    clock->overhead_mean = seconds(batch) / READINGS;
    clock->resolution = control_all_maximum(&world->control, measure_resolution());
    clock_synchronise(clock, world);
}
