#include "buffers.h"

static const double POISON = -1; /* the pattern has no negative values */

static size_t elements(int blocks, int count)
{
    return (size_t)blocks * (size_t)count;
}

bool buffers_needed(const struct routine *routine, const struct exchange *exchange, size_t *send,
                    size_t *receive)
{
    size_t block = (size_t)exchange->count * sizeof(double);
    size_t sends = (size_t)routine->sends(exchange), receives = (size_t)routine->receives(exchange);
    size_t most = sends > receives ? sends : receives;
    if (most > 0 && block > (SIZE_MAX - GUARD * sizeof(double)) / most)
        return false;
    *send = sends * block;
    *receive = receives * block + GUARD * sizeof(double);
    return true;
}

bool buffers_open(struct buffers *buffers, struct memory *memory, size_t send, size_t receive)
{
    buffers->send_bytes = send;
    buffers->receive_bytes = receive;
    buffers->send = memory_allocate(memory, send);
    buffers->receive = memory_allocate(memory, receive);
    return buffers->send != NULL && buffers->receive != NULL;
}

void buffers_close(struct buffers *buffers, struct memory *memory)
{
    memory_free(memory, buffers->send, buffers->send_bytes);
    memory_free(memory, buffers->receive, buffers->receive_bytes);
}

void buffers_span(struct span spans[2], const struct routine *routine, const struct exchange *exchange)
{
    size_t sent = elements(routine->sends(exchange), exchange->count);
    size_t received = elements(routine->receives(exchange), exchange->count) + GUARD;
    spans[0] = (struct span){exchange->send, sent * sizeof(double)};
    spans[1] = (struct span){exchange->receive, received * sizeof(double)};
}

void buffers_fill(const struct routine *routine, const struct exchange *exchange,
                  const struct pattern *pattern)
{
    size_t count = elements(routine->sends(exchange), exchange->count);
    for (size_t i = 0; i < count; i++)
        exchange->send[i] = pattern_value(pattern, exchange->rank, i);
}

void buffers_poison(const struct routine *routine, const struct exchange *exchange)
{
    size_t count = elements(routine->receives(exchange), exchange->count) + GUARD;
    for (size_t i = 0; i < count; i++)
        exchange->receive[i] = POISON;
}

struct finding buffers_verify(const struct routine *routine, const struct exchange *exchange,
                              const struct pattern *pattern)
{
    size_t count = elements(routine->receives(exchange), exchange->count);
    for (size_t i = 0; i < count + GUARD; i++) {
        double expected = i < count ? routine->expected(pattern, exchange, i) : POISON;
        double received = exchange->receive[i];
        if (received != expected)
            return (struct finding){true, i, expected, received};
    }
    return (struct finding){.wrong = false};
}
