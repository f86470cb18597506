#include "flush.h"

#include <string.h>

#include "cpu_list.h"

enum { LINE_WORDS = 8 }; /* 64 bytes; where lines are longer, some are touched twice */

/* Ranks of this host that share the cache. A rank bound inside it shares it with the others that are;
 * ranks free to move spread over the caches in proportion to their CPUs. Collective over the host. */
static int ranks_sharing(const struct world *world, const struct cache *cache)
{
    int allowed = cpu_list_count(world->cpus);
    int common = cpu_list_common(world->cpus, cache->shared_by);
    int bound = common == allowed;
    MPI_Comm sharers;
    MPI_Comm_split(world->host.comm, bound ? 1 + cpu_list_first(cache->shared_by) : 0, 0, &sharers);
    int sharing;
    MPI_Comm_size(sharers, &sharing);
    MPI_Comm_free(&sharers);
    if (!bound)
        sharing = (int)((int64_t)sharing * common / allowed);
    return sharing > 0 ? sharing : 1;
}

uint64_t flush_needed(const struct world *world, const struct caches *caches)
{
    static const struct cache unknown;
    const struct cache *last = caches_last(caches);
    bool known = last != NULL && last->bytes > 0;
    uint64_t sharing = (uint64_t)ranks_sharing(world, known ? last : &unknown);
    uint64_t needed = 0;
    if (known) {
        needed = (2 * last->bytes + sharing - 1) / sharing;
        if (last->level > 2)
            needed += 2 * caches_bytes(caches, 2);
    }
    if (control_all_minimum(&world->control, (int64_t)needed) == 0)
        return 0;
    return (uint64_t)control_all_maximum(&world->control, (int64_t)needed);
}

bool flush_open(struct flush *flush, struct memory *memory, uint64_t bytes)
{
    flush->bytes = (size_t)bytes;
    flush->words = memory_allocate(memory, flush->bytes);
    if (flush->words == NULL)
        return false;
    memset(flush->words, 0, flush->bytes);
    return true;
}

void flush_close(struct flush *flush, struct memory *memory)
{
    memory_free(memory, flush->words, flush->bytes);
}

void flush_touch(struct flush *flush)
{
    uint64_t *words = flush->words;
    size_t count = flush->bytes / sizeof *words;
    for (size_t i = 0; i < count; i += LINE_WORDS)
        words[i] += 1;
}

uint64_t flush_sum(const struct flush *flush)
{
    uint64_t sum = 0;
    size_t count = flush->bytes / sizeof *flush->words;
    for (size_t i = 0; i < count; i += LINE_WORDS)
        sum += flush->words[i];
    return sum;
}
