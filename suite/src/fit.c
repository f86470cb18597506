#include "fit.h"

#include "buffers.h"
#include "measurement.h"
#include "swaps.h"

struct limit {
    uint64_t bytes;
    const char *source;
};

static struct limit limit_of(const struct options *options, const struct world *world)
{
    uint64_t share = memory_available() / (uint64_t)world->host.size;
    if (options->memory_limit > 0 && options->memory_limit <= share)
        return (struct limit){options->memory_limit, "--memory-limit"};
    return (struct limit){share, "this rank's share of the memory available on its host"};
}

static size_t larger(size_t a, size_t b)
{
    return a > b ? a : b;
}

/* A peer for whose case this rank needs its buffers; 0 if there is none. */
static int any_peer(const struct routine *routine, const struct control *control)
{
    int peers = routine_peers(routine, control->size);
    for (int peer = 1; peer <= peers; peer++)
        if (routine_partner(routine, control->size, peer, control->rank) >= 0)
            return peer;
    return 0;
}

/* Whether the case fits when the buffers grow to what it needs, which `need` then says. */
static bool fits(struct need *need, const struct item *item, const struct control *control, uint64_t limit)
{
    struct exchange exchange = measurement_exchange(item, any_peer(item->routine, control), control);
    size_t send, receive;
    if (!buffers_needed(item->routine, &exchange, &send, &receive))
        return false;
    need->send = larger(need->send, send);
    need->receive = larger(need->receive, receive);
    need->image = larger(need->image, world_is_simulated() ? 0 : receive); /* whose ranks share one machine's memory */
    need->room = larger(need->room, swap_room(item->routine, item->bytes));
    uint64_t left = limit - need->fixed;
    return need->send <= left && need->receive <= left - need->send &&
           need->room <= left - need->send - need->receive &&
           need->image <= left - need->send - need->receive - need->room;
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
                                plan->items[i].name, (unsigned long long)plan->items[i].bytes,
                                world->control.rank, (unsigned long long)limit.bytes, limit.source);
    return true;
}
