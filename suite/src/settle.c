#include "settle.h"

#include "clock.h"

enum { TURN = 1000000 }; /* ns of work between two meetings */

void settle(const struct control *control, double wanted)
{
    int64_t begin = clock_now(), goes_on = wanted > 0;
    while (goes_on) {
        control_barrier(control);
        int64_t turn = clock_now();
        while (clock_now() - turn < TURN)
            ;
        goes_on = clock_now() - begin < (int64_t)(wanted * 1e9);
        control_broadcast(control, &goes_on, 1);
    }
}
