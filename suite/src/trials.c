#include "trials.h"

#include <stdint.h>

/* What a trial is reduced to. All are maxima, so that one message does; minima have their sign changed. */
enum { LONGEST, SHORTEST, LAST_STOP, FIRST_START, LAST_START, LATE, EXTREMES };

static size_t bytes_per_trial(void)
{
    return 2 * sizeof(int64_t) + 6 * sizeof(double) + sizeof(unsigned char);
}

static size_t bytes_per_stamp(void)
{
    return sizeof(struct stamps) + 2 * EXTREMES * sizeof(int64_t);
}

size_t trials_needed(size_t capacity, size_t batch)
{
    return capacity * bytes_per_trial() + batch * bytes_per_stamp();
}

bool trials_open(struct trials *trials, struct memory *memory, size_t capacity, size_t batch)
{
    *trials = (struct trials){.capacity = capacity, .batch = batch};
    trials->bytes = trials_needed(capacity, batch);
    trials->block = memory_allocate(memory, trials->bytes);
    if (trials->block == NULL)
        return false;
    trials->stamps = trials->block;
    trials->extremes = (int64_t *)(trials->stamps + batch);
    trials->extremes_work = trials->extremes + EXTREMES * batch;
    trials->own = trials->extremes_work + EXTREMES * batch;
    trials->others = trials->own + capacity;
    trials->t_max = (double *)(trials->others + capacity);
    trials->t_min = trials->t_max + capacity;
    trials->t_global = trials->t_min + capacity;
    trials->skew = trials->t_global + capacity;
    trials->statistics_work = trials->skew + capacity;
    trials->late = (unsigned char *)(trials->statistics_work + 2 * capacity);
    return true;
}

void trials_close(struct trials *trials, struct memory *memory)
{
    memory_free(memory, trials->block, trials->bytes);
}

static void reduce_to_extremes(int64_t *extremes, const struct stamps *stamps, const struct clock *clock)
{
    int64_t start = stamps->start - clock_offset(clock, stamps->start);
    int64_t stop = stamps->stop - clock_offset(clock, stamps->stop);
    extremes[LONGEST] = stamps->stop - stamps->start;
    extremes[SHORTEST] = -(stamps->stop - stamps->start);
    extremes[LAST_STOP] = stop;
    extremes[FIRST_START] = -start;
    extremes[LAST_START] = start;
    extremes[LATE] = stamps->late;
}

static void record(struct trials *trials, const int64_t *extremes, int legs)
{
    size_t i = trials->count++;
    trials->t_max[i] = seconds(extremes[LONGEST]) / legs;
    trials->t_min[i] = seconds(-extremes[SHORTEST]) / legs;
    trials->t_global[i] = seconds(extremes[LAST_STOP] + extremes[FIRST_START]) / legs;
    trials->skew[i] = seconds(extremes[LAST_START] + extremes[FIRST_START]);
    trials->late[i] = extremes[LATE] > 0;
    trials->timed += extremes[LONGEST];
}

void trials_append(struct trials *trials, const struct control *control, const struct clock *clock,
                   size_t count, bool takes_part, int legs)
{
    for (size_t i = 0; i < EXTREMES * count; i++)
        trials->extremes[i] = INT64_MIN;
    for (size_t i = 0; takes_part && i < count; i++)
        reduce_to_extremes(trials->extremes + EXTREMES * i, &trials->stamps[i], clock);
    for (size_t i = 0; i < count; i++)
        trials->own[trials->count + i] = trials->stamps[i].stop - trials->stamps[i].start;
    control_maximum(control, trials->extremes, trials->extremes_work, (int)(EXTREMES * count));
    if (control->rank != 0) {
        trials->count += count;
        return;
    }
    for (size_t i = 0; i < count; i++)
        record(trials, trials->extremes + EXTREMES * i, legs);
}
