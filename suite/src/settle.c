#include "settle.h"

#include <stdbool.h>

#include "clock.h"

enum { TURN = 1000000, TURNS = 50 }; /* ns of work between two meetings; turns until the next look */

/* A processor that speeds up by less than this from look to look has settled. */
static const double FASTER = 1.02;

/* Works for TURNS turns. Returns how often the clock was read in the best of them. */
static int64_t work(const struct control *control)
{
    int64_t most = 0;
    for (int number = 0; number < TURNS; number++) {
        int64_t reads = 0;
        control_barrier(control);
        for (int64_t begin = clock_now(); clock_now() - begin < TURN; reads++)
            ;
        most = reads > most ? reads : most;
    }
    return most;
}

void settle(const struct control *control, double most)
{
    int64_t begin = clock_now(), goes_on = most > 0, before = 0;
    while (goes_on) {
        int64_t reads = work(control);
        bool faster = (double)reads > FASTER * (double)before;
        before = reads;
        goes_on = control_all_maximum(control, faster) && clock_now() - begin < (int64_t)(most * 1e9);
        control_broadcast(control, &goes_on, 1); /* the time is that of rank 0 */
    }
}
