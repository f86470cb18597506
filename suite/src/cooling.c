#include "cooling.h"

#include "splitmix.h"

const char *const cache_names[] = {"flush", "evict", "warm"};

/* The block of the proof: its lines are far enough from each other that fetching one brings no other, and it fits into
 * any second-level cache. */
enum { LINES = 256, DISTANCE = 256, REPEATS = 5 };

static struct line {
    _Alignas(DISTANCE) struct line *next;
} lines[LINES];

static void cool(struct cooling *cooling, const struct span *spans, int count)
{
    if (cooling->state == CACHE_FLUSH)
        flush_touch(&cooling->flush);
    for (int i = 0; cooling->state == CACHE_EVICT && i < count; i++)
        cooling->evicted += eviction_apply(&cooling->eviction, spans[i].start, spans[i].bytes);
}

void cooling_apply(struct cooling *cooling)
{
    cool(cooling, cooling->buffers, 2);
}

/* Links the lines to one cycle in random order (Sattolo's shuffle), so that no prefetcher guesses the next one. */
static void link_lines(void)
{
    int order[LINES];
    for (int i = 0; i < LINES; i++)
        order[i] = i;
    for (int i = LINES - 1; i > 0; i--) {
        int other = (int)(splitmix_at(1, (uint64_t)i) % (uint64_t)i), held = order[i];
        order[i] = order[other];
        order[other] = held;
    }
    for (int i = 0; i < LINES; i++)
        lines[order[i]].next = &lines[order[(i + 1) % LINES]];
}

/* ns to read all lines, each of which tells where the next one is. */
static int64_t read_lines(void)
{
    struct line *volatile last;
    struct line *line = lines;
    int64_t begin = clock_now();
    for (int i = 0; i < LINES; i++)
        line = line->next;
    last = line;
    int64_t end = clock_now();
    (void)last;
    return end - begin;
}

static int64_t least(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The least of some readings, which is the least disturbed: the ratio of two of them is no accident. */
static struct coldness measure(struct cooling *cooling)
{
    struct span block = {lines, sizeof lines};
    struct coldness least_of = {.warm = INT64_MAX, .cold = INT64_MAX, .took = INT64_MAX};
    for (int i = 0; i < REPEATS; i++) {
        read_lines();
        least_of.warm = least(least_of.warm, read_lines());
        int64_t begin = clock_now();
        cool(cooling, &block, 1);
        least_of.took = least(least_of.took, clock_now() - begin);
        least_of.cold = least(least_of.cold, read_lines());
    }
    return least_of;
}

struct coldness cooling_prove(struct cooling *cooling, const struct control *control)
{
    enum { THOUSAND = 1000 };
    if (cooling->state == CACHE_WARM)
        return (struct coldness){0};
    link_lines();
    struct coldness coldness = measure(cooling);
    int64_t ratio = coldness.warm > 0 ? THOUSAND * coldness.cold / coldness.warm : 0;
    coldness.ratio = (double)control_all_minimum(control, ratio) / THOUSAND;
    return coldness;
}
