#include "fit.h"

#include "buffers.h"
#include "measurement.h"

struct limit {
    uint64_t bytes;
    const char *source;
};

static struct limit limit_of(const struct options *options, const struct world *world)
{
    uint64_t share = memory_available() / (uint64_t)world->host_size;
    if (options->memory_limit > 0 && options->memory_limit <= share)
        return (struct limit){options->memory_limit, "--memory-limit"};
    return (struct limit){share, "this rank's share of the memory available on its host"};
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* Whether the case fits when the buffers grow to what it needs, which `need` then says. */
static bool fits(struct need *need, const struct item *item, const struct control *control, uint64_t limit)
{
    int peer = !item->routine->paired ? 0 : control->rank > 0 ? control->rank : 1;
    struct exchange exchange = measurement_exchange(item, peer, control);
    size_t send, receive;
    if (!buffers_needed(item->routine, &exchange, &send, &receive))
        return false;
    need->send = larger(need->send, send);
    need->receive = larger(need->receive, receive);
    uint64_t left = limit - need->fixed;
    return need->send <= left && need->receive <= left - need->send;
}

bool fit_plan(struct need *need, const struct plan *plan, const struct options *options,
              const struct world *world, struct outcome *outcome)
{
    struct limit limit = limit_of(options, world);
    if (need->fixed > limit.bytes)
        return outcome_fail(outcome, EXIT_USAGE,
                            "flush array, trials and list of cases do not fit: they need %zu bytes on rank %d, "
                            "the limit is %llu, %s",
                            need->fixed, world->control.rank, (unsigned long long)limit.bytes, limit.source);
    for (size_t i = 0; i < plan->item_count; i++)
        if (!fits(need, &plan->items[i], &world->control, limit.bytes))
            return outcome_fail(outcome, EXIT_USAGE,
                                "%s with %llu bytes does not fit into the memory of rank %d: the limit is %llu "
                                "bytes, %s",
                                plan->items[i].routine->name, (unsigned long long)plan->items[i].bytes,
                                world->control.rank, (unsigned long long)limit.bytes, limit.source);
    return true;
}
