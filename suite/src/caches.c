#include "caches.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "system_files.h"

static bool read_entry(int cpu, int index, const char *name, char *value, size_t size)
{
    char path[128], line[SYSTEM_LINE];
    snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%d/cache/index%d/%s", cpu, index, name);
    if (!system_line(path, line, sizeof line))
        return false;
    size_t length = strlen(line) < size ? strlen(line) : size - 1;
    memcpy(value, line, length);
    value[length] = '\0';
    return true;
}

/* "32K" or "8M", as the kernel writes sizes. */
static uint64_t parse_size(const char *text)
{
    char *unit;
    uint64_t number = strtoull(text, &unit, 10);
    switch (*unit) {
    case 'K':
        return number * 1024;
    case 'M':
        return number * 1024 * 1024;
    default:
        return number;
    }
}

static bool read_cache(struct cache *cache, int cpu, int index)
{
    char level[16], size[32];
    if (!read_entry(cpu, index, "level", level, sizeof level) ||
        !read_entry(cpu, index, "type", cache->type, sizeof cache->type) ||
        !read_entry(cpu, index, "size", size, sizeof size) ||
        !read_entry(cpu, index, "shared_cpu_list", cache->shared_by, sizeof cache->shared_by))
        return false;
    cache->level = (int)strtol(level, NULL, 10);
    cache->bytes = parse_size(size);
    return true;
}

void caches_read(struct caches *caches, int cpu)
{
    caches->count = 0;
    for (int index = 0; index < CACHES_MOST; index++)
        if (read_cache(&caches->list[caches->count], cpu, index))
            caches->count++;
}

static bool holds_data(const struct cache *cache)
{
    return strcmp(cache->type, "Instruction") != 0;
}

const struct cache *caches_last(const struct caches *caches)
{
    const struct cache *last = NULL;
    for (int i = 0; i < caches->count; i++)
        if (holds_data(&caches->list[i]) && (last == NULL || caches->list[i].level > last->level))
            last = &caches->list[i];
    return last;
}

uint64_t caches_bytes(const struct caches *caches, int level)
{
    for (int i = 0; i < caches->count; i++)
        if (caches->list[i].level == level && holds_data(&caches->list[i]))
            return caches->list[i].bytes;
    return 0;
}
