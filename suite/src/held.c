#include "held.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

/* The kernel's number, of three, in ns; -1 if it keeps no books. */
static int64_t waited(const struct held *held)
{
    char text[128];
    ssize_t length = held->file < 0 ? -1 : pread(held->file, text, sizeof text - 1, 0);
    long long ran, delayed;
    if (length <= 0)
        return -1;
    text[length] = '\0';
    return sscanf(text, "%lld %lld", &ran, &delayed) == 2 && ran > 0 ? delayed : -1;
}

/* Adds `sign` times what the kernel has counted. */
static void count(struct held *held, int sign)
{
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) != 0)
        return;
    held->voluntary += sign * usage.ru_nvcsw;
    held->involuntary += sign * usage.ru_nivcsw;
    held->faults += sign * usage.ru_minflt;
}

void held_open(struct held *held)
{
    *held = (struct held){.file = open("/proc/self/schedstat", O_RDONLY | O_CLOEXEC)};
    held->began = held->last = waited(held);
    count(held, -1);
}

void held_sample(struct held *held)
{
    int64_t now = held->last < 0 ? -1 : waited(held), took = now - held->last;
    if (now < 0 || took < HOLD_LEAST) {
        held->last = now;
        return;
    }
    struct timespec time;
    clock_gettime(CLOCK_REALTIME, &time);
    struct detour hold = {(int64_t)time.tv_sec * 1000000000 + time.tv_nsec, took};
    held->kept = noise_keep(held->holds, held->kept, HOLDS_KEPT, hold);
    held->last = now;
}

int64_t held_close(struct held *held)
{
    held_sample(held);
    count(held, 1);
    if (held->file >= 0)
        close(held->file);
    held->file = -1;
    return held->last < 0 ? -1 : held->last - held->began;
}
