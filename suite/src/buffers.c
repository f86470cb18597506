#include "buffers.h"

/* Counts and offsets, of the three kinds of struct exchange. */
enum { BLOCK_LISTS = 6 };

/* A payload of bytes has the remainders of the pattern's numbers; the largest byte is none of them. */
enum { REMAINDERS = 251, POISONED_BYTE = 255 };

static double byte_of(double value)
{
    return value < 0 ? POISONED_BYTE : (double)((int64_t)value % REMAINDERS);
}

static double payload(const struct exchange *exchange, double value)
{
    return exchange->type == MPI_BYTE ? byte_of(value) : value;
}

static void put(const struct exchange *exchange, double *buffer, size_t index, double value)
{
    if (exchange->type == MPI_BYTE)
        ((unsigned char *)buffer)[index] = (unsigned char)byte_of(value);
    else
        buffer[index] = value;
}

static double get(const struct exchange *exchange, const double *buffer, size_t index)
{
    return exchange->type == MPI_BYTE ? ((const unsigned char *)buffer)[index] : buffer[index];
}

/* Elements received, and behind them those of the guard. */
static size_t with_guard(size_t elements, const struct exchange *exchange)
{
    return elements + GUARD_BYTES / element_size(exchange);
}

bool buffers_needed(const struct routine *routine, const struct exchange *exchange, size_t *send,
                    size_t *receive)
{
    uint64_t sends = routine->sends(exchange), receives = routine->receives(exchange);
    uint64_t most = sends > receives ? sends : receives;
    if (most > (SIZE_MAX - GUARD_BYTES) / element_size(exchange))
        return false;
    *send = (size_t)sends * element_size(exchange);
    *receive = (size_t)receives * element_size(exchange) + GUARD_BYTES;
    return true;
}

bool buffers_open(struct buffers *buffers, struct memory *memory, const struct need *need, int processes)
{
    buffers->send_bytes = need->send;
    buffers->receive_bytes = need->receive;
    buffers->room_bytes = need->room;
    buffers->send = memory_allocate(memory, need->send);
    buffers->receive = memory_allocate(memory, need->receive);
    buffers->room = memory_allocate(memory, need->room);
    buffers->counts = memory_allocate(memory, buffers_counts_needed(processes));
    buffers->processes = processes;
    return buffers->send != NULL && buffers->receive != NULL && buffers->room != NULL && buffers->counts != NULL;
}

size_t buffers_counts_needed(int processes)
{
    return BLOCK_LISTS * (size_t)processes * sizeof(int);
}

void buffers_assign(const struct buffers *buffers, struct exchange *exchange)
{
    int processes = buffers->processes;
    int *list[BLOCK_LISTS];
    for (int i = 0; i < BLOCK_LISTS; i++)
        list[i] = buffers->counts + (size_t)i * (size_t)processes;
    exchange->send = buffers->send;
    exchange->receive = buffers->receive;
    exchange->equal = (struct blocks){list[0], list[1]};
    exchange->split = (struct blocks){list[2], list[3]};
    exchange->single = (struct blocks){list[4], list[5]};
    for (int rank = 0; rank < processes; rank++) {
        list[0][rank] = exchange->count;
        /* what goes beyond is no case of a routine that looks at it */
        list[1][rank] = (int)((unsigned)rank * (unsigned)exchange->count);
        list[3][rank] = part_offset(exchange, rank);
        list[2][rank] = part_offset(exchange, rank + 1) - list[3][rank];
        list[4][rank] = rank == 0 ? exchange->count : 0;
        list[5][rank] = 0;
    }
}

void buffers_close(struct buffers *buffers, struct memory *memory)
{
    memory_free(memory, buffers->send, buffers->send_bytes);
    memory_free(memory, buffers->receive, buffers->receive_bytes);
    memory_free(memory, buffers->room, buffers->room_bytes);
    memory_free(memory, buffers->counts, buffers_counts_needed(buffers->processes));
}

void buffers_span(struct span spans[2], const struct routine *routine, const struct exchange *exchange)
{
    size_t sent = (size_t)routine->sends(exchange), received = (size_t)routine->receives(exchange);
    spans[0] = (struct span){exchange->send, sent * element_size(exchange)};
    spans[1] = (struct span){exchange->receive, received * element_size(exchange) + GUARD_BYTES};
}

void buffers_fill(const struct routine *routine, const struct exchange *exchange,
                  const struct pattern *pattern)
{
    size_t count = (size_t)routine->sends(exchange);
    for (size_t i = 0; i < count; i++)
        put(exchange, exchange->send, i, pattern_value(pattern, exchange->rank, i));
}

void buffers_poison(const struct routine *routine, const struct exchange *exchange)
{
    size_t count = with_guard((size_t)routine->receives(exchange), exchange);
    for (size_t i = 0; i < count; i++)
        put(exchange, exchange->receive, i, POISON);
}

struct finding buffers_verify(const struct routine *routine, const struct exchange *exchange,
                              const struct pattern *pattern)
{
    size_t count = (size_t)routine->receives(exchange);
    for (size_t i = 0; i < with_guard(count, exchange); i++) {
        double expected = payload(exchange, i < count ? routine->expected(pattern, exchange, i) : POISON);
        double received = get(exchange, exchange->receive, i);
        if (received != expected)
            return (struct finding){true, i, expected, received};
    }
    return (struct finding){.wrong = false};
}
