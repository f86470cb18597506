/* A processor that was idle: each reading of the clock costs up to 400 ns more, ever less, in the first 0.6 s after
 * the first one. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>

enum { MOST = 400, LASTS = 600000000 }; /* ns */

static long long nanoseconds(const struct timespec *time)
{
    return time->tv_sec * 1000000000LL + time->tv_nsec;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    static long long first;
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (id != CLOCK_MONOTONIC)
        return result;
    if (first == 0)
        first = nanoseconds(time);
    long long left = first + LASTS - nanoseconds(time), until = nanoseconds(time) + MOST * left / LASTS;
    while (left > 0 && nanoseconds(time) < until)
        real(id, time);
    return result;
}
