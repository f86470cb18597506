#include "buffers.h"

#include <stddef.h>
#include <string.h>

/* Counts and offsets, of the three kinds of struct exchange. */
enum { BLOCK_LISTS = 6 };

/* The pattern has no byte of all ones. */
enum { POISONED_BYTE = 255, GUARDED_BYTE = 0xa5 };

static void put(const struct exchange *exchange, double *buffer, size_t index, double value)
{
    if (exchange->type == MPI_BYTE)
        ((unsigned char *)buffer)[index] = (unsigned char)value;
    else
        buffer[index] = value;
}

static double get(const struct exchange *exchange, const double *buffer, size_t index)
{
    return exchange->type == MPI_BYTE ? ((const unsigned char *)buffer)[index] : buffer[index];
}

bool buffers_needed(const struct routine *routine, const struct exchange *exchange, size_t *send,
                    size_t *receive)
{
    uint64_t sends = routine->sends(exchange), receives = routine->receives(exchange);
    uint64_t most = sends > receives ? sends : receives;
    if (most > (SIZE_MAX - 2 * GUARD_BYTES) / element_size(exchange))
        return false;
    *send = (size_t)sends * element_size(exchange) + 2 * GUARD_BYTES;
    *receive = (size_t)receives * element_size(exchange) + 2 * GUARD_BYTES;
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
    exchange->send = buffers->send + GUARD_BYTES / sizeof *buffers->send;
    exchange->receive = buffers->receive + GUARD_BYTES / sizeof *buffers->receive;
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
    spans[1] = (struct span){exchange->receive, received * element_size(exchange) + EVICTED_GUARD};
}

struct pattern buffers_pattern(const struct routine *routine, const struct exchange *exchange, uint64_t seed)
{
    enum data data = exchange->type == MPI_BYTE              ? DATA_BYTES
                     : routine->combine == COMBINE_NOTHING   ? DATA_BITS
                     : routine->combine == COMBINE_MIN       ? DATA_ORDER
                     : routine->combine == COMBINE_MAX       ? DATA_ORDER
                                                             : DATA_SUMS;
    return pattern_open(data, seed, exchange->processes, (int)exchange->calls);
}

void buffers_fill(const struct routine *routine, const struct exchange *exchange,
                  const struct pattern *pattern)
{
    size_t count = (size_t)routine->sends(exchange);
    for (size_t i = 0; i < count; i++)
        put(exchange, exchange->send, i, pattern_value(pattern, exchange->rank, i));
}

void buffers_renew(const struct routine *routine, const struct exchange *exchange, struct pattern *pattern, uint64_t turn)
{
    struct pattern next = pattern_turn(pattern, turn);
    pattern_renew(pattern, &next, exchange->send, (size_t)routine->sends(exchange));
    *pattern = next;
}

/* The pages around `bytes` bytes of a buffer. */
static void set_guards(double *buffer, size_t bytes)
{
    memset((char *)buffer - GUARD_BYTES, GUARDED_BYTE, GUARD_BYTES);
    memset((char *)buffer + bytes, GUARDED_BYTE, GUARD_BYTES);
}

/* The first byte around them that was written to, counted from the beginning of the buffer; 0 if none was. */
static ptrdiff_t damaged_byte(const double *buffer, size_t bytes)
{
    static unsigned char intact[GUARD_BYTES];
    const unsigned char *begin = (const unsigned char *)buffer;
    if (intact[0] == 0)
        memset(intact, GUARDED_BYTE, sizeof intact);
    if (memcmp(begin - GUARD_BYTES, intact, GUARD_BYTES) == 0 && memcmp(begin + bytes, intact, GUARD_BYTES) == 0)
        return 0;
    for (ptrdiff_t i = -GUARD_BYTES; i < 0; i++)
        if (begin[i] != GUARDED_BYTE)
            return i;
    ptrdiff_t i = (ptrdiff_t)bytes;
    while (begin[i] == GUARDED_BYTE)
        i++;
    return i;
}

/* Looks at the guards of a buffer with `count` elements. One byte is told, by the element that it would be of. */
static struct finding check_guards(const struct exchange *exchange, const double *buffer, size_t count, bool sent)
{
    ptrdiff_t size = (ptrdiff_t)element_size(exchange), byte = damaged_byte(buffer, count * (size_t)size);
    if (byte == 0 && (count > 0 || ((const unsigned char *)buffer)[0] == GUARDED_BYTE))
        return (struct finding){.wrong = false};
    int64_t index = byte < 0 ? (byte - size + 1) / size : byte / size;
    return (struct finding){true, sent, index, GUARDED_BYTE, ((const unsigned char *)buffer)[byte], 0};
}

void buffers_poison(const struct routine *routine, const struct exchange *exchange)
{
    size_t count = (size_t)routine->receives(exchange);
    if (exchange->type == MPI_BYTE)
        memset(exchange->receive, POISONED_BYTE, count);
    for (size_t i = 0; exchange->type != MPI_BYTE && i < count; i++)
        exchange->receive[i] = POISON;
    set_guards(exchange->receive, count * element_size(exchange));
    set_guards(exchange->send, (size_t)routine->sends(exchange) * element_size(exchange));
}

struct finding buffers_verify(const struct routine *routine, const struct exchange *exchange,
                              const struct pattern *pattern)
{
    size_t count = (size_t)routine->receives(exchange);
    for (size_t i = 0; i < count; i++) {
        double expected = routine->expected(pattern, exchange, i), received = get(exchange, exchange->receive, i);
        if (memcmp(&received, &expected, sizeof received) != 0)
            return (struct finding){true, false, (int64_t)i, expected, received, 0};
    }
    struct finding found = check_guards(exchange, exchange->receive, count, false);
    return found.wrong ? found : check_guards(exchange, exchange->send, (size_t)routine->sends(exchange), true);
}
