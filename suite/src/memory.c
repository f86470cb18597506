#include "memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "system_files.h"

const char *const memory_names[] = {"host", "device", "managed"};

enum { PAGE = 4096 };

void *memory_allocate(struct memory *memory, size_t bytes)
{
    void *block = NULL;
    if (bytes > SIZE_MAX - PAGE || posix_memalign(&block, PAGE, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    memory->allocated += bytes;
    if (memory->allocated > memory->peak)
        memory->peak = memory->allocated;
    return block;
}

void memory_free(struct memory *memory, void *block, size_t bytes)
{
    if (block != NULL)
        memory->allocated -= bytes;
    free(block);
}

static uint64_t least(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* The tightest limit on the way from a control group to the root of its hierarchy. A limit that cannot
 * be read, or is the word "max", does not bind. */
static uint64_t group_limit(const char *hierarchy, char *group, const char *file)
{
    uint64_t limit = UINT64_MAX;
    for (;;) {
        char path[2 * SYSTEM_LINE], line[SYSTEM_LINE];
        snprintf(path, sizeof path, "%s%s/%s", hierarchy, group, file);
        if (system_line(path, line, sizeof line) && line[0] >= '0' && line[0] <= '9')
            limit = least(limit, strtoull(line, NULL, 10));
        char *end = strrchr(group, '/');
        if (end == NULL)
            return limit;
        *end = '\0';
    }
}

static uint64_t control_group_limit(void)
{
    char group[SYSTEM_LINE];
    if (system_suffix("/proc/self/cgroup", ":memory:", group, sizeof group))
        return group_limit("/sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    if (system_suffix("/proc/self/cgroup", "0::", group, sizeof group))
        return group_limit("/sys/fs/cgroup", group, "memory.max");
    return UINT64_MAX;
}

uint64_t memory_available(void)
{
    uint64_t available = control_group_limit();
    char field[SYSTEM_LINE];
    if (system_suffix("/proc/meminfo", "MemAvailable:", field, sizeof field))
        available = least(available, strtoull(field, NULL, 10) * 1024);
    struct rlimit limit;
    if (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY)
        available = least(available, (uint64_t)limit.rlim_cur);
    return available;
}
