#include "pairs.h"

#include "gather.h"

static size_t bytes_of(const struct trials *trials)
{
    return trials->count * sizeof *trials->own;
}

/* A pair's time is that of the slower of its two ranks: the lower one learns it. */
static void settle(struct trials *trials, int partner, const struct control *control)
{
    if (partner < control->rank) {
        control_send(control, partner, trials->own, bytes_of(trials));
        return;
    }
    control_receive(control, partner, trials->others, bytes_of(trials));
    for (size_t i = 0; i < trials->count; i++)
        if (trials->others[i] > trials->own[i])
            trials->own[i] = trials->others[i];
}

static void write_pair(struct json *json, int low, int high, const int64_t *intervals, size_t count, int legs)
{
    json_open(json, '{');
    json_key_integer(json, "a", low);
    json_key_integer(json, "b", high);
    json_key(json, "t");
    json_open(json, '[');
    for (size_t i = 0; i < count; i++)
        json_number(json, seconds(intervals[i]) / legs);
    json_close(json, ']');
    json_close(json, '}');
}

void pairs_write(struct json *json, const struct routine *routine, int round, size_t calls, struct trials *trials,
                 const struct control *control)
{
    struct gather gather;
    gather_open(&gather, control);
    json_key(json, "pairs");
    json_open(json, '[');
    for (int low = 0; low < control->size; low++) {
        int high = routine_partner(routine, control->size, round, low);
        if (high < low)
            continue; /* left over, or written with its partner */
        if (low == 0)
            settle(trials, high, control);
        else
            gather_get(&gather, trials->others, bytes_of(trials));
        const int64_t *intervals = low == 0 ? trials->own : trials->others;
        write_pair(json, low, high, intervals, trials->count, routine_legs(routine) * (int)calls);
    }
    json_close(json, ']');
    gather_close(&gather);
}

void pairs_answer(const struct routine *routine, int round, struct trials *trials, const struct control *control)
{
    int partner = routine_partner(routine, control->size, round, control->rank);
    struct gather gather;
    gather_open(&gather, control);
    if (partner >= 0)
        settle(trials, partner, control);
    if (partner > control->rank)
        gather_put(&gather, trials->own, bytes_of(trials));
    gather_finish(&gather);
}
