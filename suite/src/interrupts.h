/* How often each CPU was interrupted since the machine was started. */
#ifndef MPICOST_INTERRUPTS_H
#define MPICOST_INTERRUPTS_H

#include <stdbool.h>
#include <stdint.h>

enum { INTERRUPTS_CPUS = 1024 /* further CPUs are not counted */, INTERRUPTS_UNKNOWN = -1 };

struct interrupts {
    int64_t of_cpu[INTERRUPTS_CPUS];
};

/* Adds `sign` times what a file such as /proc/interrupts tells. False if there is none. */
bool interrupts_add(struct interrupts *interrupts, const char *path, int sign);

/* Those of the CPUs in a list such as "0-3,8". */
int64_t interrupts_of(const struct interrupts *interrupts, const char *cpus);

#endif
