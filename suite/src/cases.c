#include "cases.h"

static size_t entries(size_t count)
{
    return count > 0 ? count : 1;
}

size_t cases_needed(size_t count, size_t rounds)
{
    return entries(count) * (sizeof(struct measurement) + 2 * rounds * sizeof(int64_t));
}

bool cases_open(struct cases *cases, struct memory *memory, size_t count, size_t rounds)
{
    cases->bytes = cases_needed(count, rounds);
    cases->list = memory_allocate(memory, cases->bytes);
    if (cases->list == NULL)
        return false;
    int64_t *core_latency = (int64_t *)(cases->list + entries(count));
    for (size_t i = 0; i < entries(count); i++)
        cases->list[i] = (struct measurement){.wrong.rank = -1, .core_latency = core_latency + 2 * rounds * i};
    return true;
}

void cases_close(struct cases *cases, struct memory *memory)
{
    memory_free(memory, cases->list, cases->bytes);
}
