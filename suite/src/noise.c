#include "noise.h"

#include <stdbool.h>
#include <string.h>

#include "clock.h"

/* About a microsecond of work; and how often it is done to find the fastest, before anything is called a detour. */
enum { MULTIPLICATIONS = 1024, TRIALS = 2000, FACTOR = 2 };

/* Read anew for each step, as in alone.c. */
static const volatile uint64_t factor = 6364136223846793005u;
static volatile uint64_t result;

static void work(void)
{
    uint64_t state = result;
    for (int step = 0; step < MULTIPLICATIONS; step++)
        state = factor * state + 1442695040888963407u;
    result = state;
}

static int64_t fastest(void)
{
    int64_t least = INT64_MAX, last = clock_now();
    for (int i = 0; i < TRIALS; i++) {
        work();
        int64_t now = clock_now();
        least = now - last < least ? now - last : least;
        last = now;
    }
    return least;
}

int noise_keep(struct detour *list, int kept, int room, struct detour detour)
{
    int shortest = 0;
    for (int i = 1; i < kept; i++)
        shortest = list[i].took < list[shortest].took ? i : shortest;
    if (kept == room && list[shortest].took >= detour.took)
        return kept;
    if (kept == room) {
        memmove(list + shortest, list + shortest + 1, (size_t)(kept - shortest - 1) * sizeof *list);
        kept--;
    }
    list[kept] = detour;
    return kept + 1;
}

void noise_probe(struct noise *noise)
{
    *noise = (struct noise){.quantum = fastest()};
    int64_t began = clock_now(), last = began, now = began;
    while (now - began < NOISE_SPAN) {
        work();
        now = clock_now();
        int64_t more = now - last - noise->quantum;
        last = now;
        if (more <= (FACTOR - 1) * noise->quantum)
            continue;
        noise->lost += more;
        noise->longest = more > noise->longest ? more : noise->longest;
        noise->kept = noise_keep(noise->longest_of_all, noise->kept, DETOURS_KEPT, (struct detour){now - began, more});
    }
    noise->span = now - began;
}
