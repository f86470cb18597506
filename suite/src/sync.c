#include "sync.h"

#include <stdlib.h>
#include <time.h>

/* Times in ns. A rank that has no core of its own misses windows of any length, so long ones are no use. */
enum { PROBES = 11, SLACK_FACTOR = 3, SLACK_LEAST = 2000, SLACK_MOST = 10000000 };

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* This rank's idea of rank 0's clock. */
static int64_t rank_0_now(const struct clock *clock)
{
    int64_t now = clock_now();
    return now - clock_offset(clock, now);
}

/* ns until the news of a start has reached the last rank: median of some probes. Result on rank 0. */
static int64_t announcement_time(const struct sync *sync)
{
    int64_t delays[PROBES];
    for (int i = 0; i < PROBES; i++) {
        control_barrier(sync->control);
        int64_t work, sent = clock_now();
        control_broadcast(sync->control, &sent, 1);
        delays[i] = rank_0_now(sync->clock) - sent;
        control_maximum(sync->control, &delays[i], &work, 1);
    }
    qsort(delays, PROBES, sizeof delays[0], compare);
    return delays[PROBES / 2];
}

void sync_open(struct sync *sync, enum sync_kind kind, const struct world *world,
               const struct clock *clock)
{
    *sync = (struct sync){.kind = kind, .control = &world->control, .clock = clock};
    if (kind != SYNC_WINDOW)
        return;
    int64_t slack = SLACK_FACTOR * announcement_time(sync) + 2 * clock->error;
    sync->least = slack < SLACK_LEAST ? SLACK_LEAST : slack > SLACK_MOST ? SLACK_MOST : slack;
    sync->slack = sync->least;
}

/* Doubling after a miss and shrinking by a tenth after a hit settle where about one trial in eight is
 * missed, or at the least that the announcement takes. */
void sync_adapt(struct sync *sync, bool late)
{
    int64_t slack = late ? 2 * sync->slack : sync->slack - sync->slack / 10;
    sync->slack = slack < sync->least ? sync->least : slack > SLACK_MOST ? SLACK_MOST : slack;
}

/* A rank is late if it learns of the window after its opening, or wakes up well after it. */
static bool start_window(const struct sync *sync)
{
    control_barrier(sync->control);
    int64_t opening = clock_now() + sync->slack;
    control_broadcast(sync->control, &opening, 1);
    opening += clock_offset(sync->clock, clock_now());
    int64_t tolerance = 10 * (sync->clock->overhead + sync->clock->resolution);
    int64_t now = clock_now();
    bool late = now > opening;
    while (now < opening)
        now = clock_now();
    return late || now > opening + tolerance;
}

bool sync_start(const struct sync *sync)
{
    if (sync->kind == SYNC_WINDOW)
        return start_window(sync);
    sync_end(sync);
    return false;
}

void sync_end(const struct sync *sync)
{
    if (sync->kind == SYNC_BARRIER)
        MPI_Barrier(sync->control->comm);
    else
        control_barrier(sync->control);
}

void sync_park(const struct sync *sync, bool parks)
{
    static const struct timespec NAP = {.tv_nsec = 50000};
    MPI_Request request;
    int done = 0;
    MPI_Ibarrier(sync->control->comm, &request);
    while (parks && !done) {
        MPI_Test(&request, &done, MPI_STATUS_IGNORE);
        if (!done)
            nanosleep(&NAP, NULL);
    }
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}
