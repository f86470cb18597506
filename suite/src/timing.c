#include "timing.h"

struct stamps timing_trial(const struct exchange *exchange, meeting *meet, bool follows, size_t calls,
                           const struct sync *sync, struct cooling *cooling)
{
    cooling_apply(cooling);
    /* A flush has also thrown out the arguments of the call and the pages behind the clock. They are
     * ours, not the routine's, so they are fetched again before the start. */
    struct exchange arguments = *exchange;
    (void)clock_now();
    bool late = !follows && sync_start(sync);
    if (meet != NULL)
        meet(&arguments);
    int64_t start = clock_now();
    for (size_t i = 0; i < calls; i++)
        arguments.operation(&arguments);
    int64_t stop = clock_now();
    if (exchange->parks)
        sync_park(sync, exchange->partner < 0);
    sync_end(sync);
    return (struct stamps){.start = start, .stop = stop, .late = late};
}
