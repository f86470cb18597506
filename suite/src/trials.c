#include "trials.h"

#include <stdint.h>

/* What a trial is reduced to. All are maxima, so that one message does; minima have their sign changed. */
enum { LONGEST, SHORTEST, LAST_STOP, FIRST_START, LAST_START, LATE, EXTREMES };

enum { TIMES = 4 }; /* of a trial that are kept, beside whether it was late */

/* Adds `count` x `bytes` to `sum`; false if that is too much. */
static bool add(size_t *sum, size_t count, size_t bytes)
{
    size_t product;
    return !__builtin_mul_overflow(count, bytes, &product) && !__builtin_add_overflow(*sum, product, sum);
}

bool trials_needed(const struct room *room, size_t *bytes)
{
    size_t case_bytes = 0, own_bytes = 0;
    *bytes = 0;
    return add(&case_bytes, room->capacity, TIMES * sizeof(double) + sizeof(unsigned char)) &&
           add(&own_bytes, room->capacity, sizeof(int64_t)) && add(bytes, room->cases, case_bytes) &&
           add(bytes, room->played + 2, own_bytes) &&
           add(bytes, room->cases > 0 ? room->capacity : 0, 2 * sizeof(double)) &&
           add(bytes, room->batch, sizeof(struct stamps) + 2 * EXTREMES * sizeof(int64_t));
}

bool trials_open(struct trials *trials, struct memory *memory, const struct room *room)
{
    *trials = (struct trials){.room = *room};
    if (!trials_needed(room, &trials->bytes))
        return false;
    trials->block = memory_allocate(memory, trials->bytes);
    if (trials->block == NULL)
        return false;
    trials->stamps = trials->block;
    trials->extremes = (int64_t *)(trials->stamps + room->batch);
    trials->extremes_work = trials->extremes + EXTREMES * room->batch;
    trials->others = trials->extremes_work + EXTREMES * room->batch;
    trials->own_of_played = trials->others + room->capacity;
    trials->times_of_cases = (double *)(trials->own_of_played + (1 + room->played) * room->capacity);
    trials->statistics_work = trials->times_of_cases + TIMES * room->cases * room->capacity;
    trials->late_of_cases = (unsigned char *)(trials->statistics_work + (room->cases > 0 ? 2 * room->capacity : 0));
    return true;
}

void trials_close(struct trials *trials, struct memory *memory)
{
    memory_free(memory, trials->block, trials->bytes);
}

void trials_select(struct trials *trials, size_t number, size_t played, size_t count)
{
    size_t capacity = trials->room.capacity;
    trials->count = count;
    trials->own = trials->own_of_played + played * capacity;
    if (number >= trials->room.cases)
        return; /* kept on rank 0 */
    trials->t_max = trials->times_of_cases + TIMES * number * capacity;
    trials->t_min = trials->t_max + capacity;
    trials->t_global = trials->t_min + capacity;
    trials->skew = trials->t_global + capacity;
    trials->late = trials->late_of_cases + number * capacity;
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

int64_t *trials_last_starts(struct trials *trials, size_t count)
{
    for (size_t i = 0; i < count; i++)
        trials->extremes_work[i] = trials->extremes[EXTREMES * i + LAST_START];
    return trials->extremes_work;
}
