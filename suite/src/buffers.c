#include "buffers.h"

#include <stddef.h>
#include <string.h>

#include "element.h"

/* Counts and offsets, of the three kinds of struct exchange. */
enum { BLOCK_LISTS = 6 };

/* The pattern has no byte of all ones. */
enum { POISONED_BYTE = 255, GUARDED_BYTE = 0xa5 };

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
    buffers->send[MEMORY_HOST] = memory_allocate(memory, need->send);
    buffers->receive[MEMORY_HOST] = memory_allocate(memory, need->receive);
    buffers->room = memory_allocate(memory, need->room);
    buffers->image.elements = need->image > 0 ? memory_allocate(memory, need->image) : NULL;
    buffers->image_bytes = need->image;
    buffers->counts = memory_allocate(memory, buffers_counts_needed(processes));
    buffers->processes = processes;
    return buffers->send[MEMORY_HOST] != NULL && buffers->receive[MEMORY_HOST] != NULL && buffers->room != NULL &&
           buffers->counts != NULL && (need->image == 0 || buffers->image.elements != NULL);
}

static bool open_kind(double **buffer, size_t bytes, enum memory_kind kind, const struct device *device,
                      struct outcome *outcome)
{
    if (kind == MEMORY_HOST || *buffer != NULL)
        return true;
    *buffer = device_allocate(device, kind, bytes, outcome);
    return *buffer != NULL;
}

bool buffers_open_device(struct buffers *buffers, const struct device *device, const struct plan *plan,
                         struct outcome *outcome)
{
    bool well = true;
    buffers->device = device;
    for (size_t i = 0; well && i < plan->item_count; i++) {
        enum memory_kind sends = plan->items[i].send, receives = plan->items[i].receive;
        well = open_kind(&buffers->send[sends], buffers->send_bytes, sends, device, outcome) &&
               open_kind(&buffers->receive[receives], buffers->receive_bytes, receives, device, outcome);
    }
    return well;
}

size_t buffers_counts_needed(int processes)
{
    return BLOCK_LISTS * (size_t)processes * sizeof(int);
}

static double *behind_guard(double *buffer)
{
    return buffer + GUARD_BYTES / sizeof *buffer;
}

void buffers_assign(struct buffers *buffers, struct exchange *exchange)
{
    int processes = buffers->processes;
    int *list[BLOCK_LISTS];
    for (int i = 0; i < BLOCK_LISTS; i++)
        list[i] = buffers->counts + (size_t)i * (size_t)processes;
    exchange->send = behind_guard(buffers->send[exchange->send_kind]);
    exchange->receive = behind_guard(buffers->receive[exchange->receive_kind]);
    exchange->filled = behind_guard(buffers->send[MEMORY_HOST]);
    exchange->checked = behind_guard(buffers->receive[MEMORY_HOST]);
    exchange->device = buffers->device;
    exchange->image = &buffers->image;
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
    memory_free(memory, buffers->send[MEMORY_HOST], buffers->send_bytes);
    memory_free(memory, buffers->receive[MEMORY_HOST], buffers->receive_bytes);
    for (int kind = MEMORY_HOST + 1; kind < MEMORY_KINDS; kind++) {
        device_release(buffers->device, buffers->send[kind]);
        device_release(buffers->device, buffers->receive[kind]);
    }
    memory_free(memory, buffers->room, buffers->room_bytes);
    memory_free(memory, buffers->image.elements, buffers->image_bytes);
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

/* A buffer of the case, and the memory of the host that stands for it: the same, unless it lies elsewhere. */
struct copy {
    double *buffer, *here;
    enum memory_kind kind;
};

/* Bytes of a buffer, from its beginning; below 0 they are of its first guard. */
struct range {
    ptrdiff_t from, to;
};

static struct copy sent_of(const struct exchange *exchange)
{
    return (struct copy){exchange->send, exchange->filled, exchange->send_kind};
}

static struct copy received_of(const struct exchange *exchange)
{
    return (struct copy){exchange->receive, exchange->checked, exchange->receive_kind};
}

static struct range without_guards(size_t bytes)
{
    return (struct range){0, (ptrdiff_t)bytes};
}

static struct range with_guards(size_t bytes)
{
    return (struct range){-GUARD_BYTES, (ptrdiff_t)bytes + GUARD_BYTES};
}

static struct range guard_before(void)
{
    return (struct range){-GUARD_BYTES, 0};
}

static struct range guard_behind(size_t bytes)
{
    return (struct range){(ptrdiff_t)bytes, (ptrdiff_t)bytes + GUARD_BYTES};
}

static void bring_in(const struct exchange *exchange, struct copy copy, struct range range)
{
    if (copy.kind != MEMORY_HOST)
        device_copy_in(exchange->device, (char *)copy.buffer + range.from, (char *)copy.here + range.from,
                       (size_t)(range.to - range.from));
}

static void bring_out(const struct exchange *exchange, struct copy copy, struct range range)
{
    if (copy.kind != MEMORY_HOST)
        device_copy_out(exchange->device, (char *)copy.here + range.from, (char *)copy.buffer + range.from,
                        (size_t)(range.to - range.from));
}

static size_t bytes_sent(const struct routine *routine, const struct exchange *exchange)
{
    return (size_t)routine->sends(exchange) * element_size(exchange);
}

void buffers_fill(const struct routine *routine, const struct exchange *exchange,
                  const struct pattern *pattern)
{
    size_t count = (size_t)routine->sends(exchange);
    for (size_t i = 0; i < count; i++)
        element_put(exchange, exchange->filled, i, pattern_value(pattern, exchange->rank, i));
    bring_in(exchange, sent_of(exchange), without_guards(bytes_sent(routine, exchange)));
    image_forget(exchange->image);
}

void buffers_renew(const struct routine *routine, const struct exchange *exchange, struct pattern *pattern, uint64_t turn)
{
    struct pattern next = pattern_turn(pattern, turn);
    struct range data = without_guards(bytes_sent(routine, exchange));
    bring_out(exchange, sent_of(exchange), data);
    pattern_renew(pattern, &next, exchange->filled, (size_t)routine->sends(exchange));
    bring_in(exchange, sent_of(exchange), data);
    image_turn(exchange->image, routine, exchange, pattern, &next);
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
    size_t count = (size_t)routine->receives(exchange), sent = bytes_sent(routine, exchange);
    if (exchange->type == MPI_BYTE)
        memset(exchange->checked, POISONED_BYTE, count);
    for (size_t i = 0; exchange->type != MPI_BYTE && i < count; i++)
        exchange->checked[i] = POISON;
    set_guards(exchange->checked, count * element_size(exchange));
    set_guards(exchange->filled, sent);
    bring_in(exchange, received_of(exchange), with_guards(count * element_size(exchange)));
    bring_in(exchange, sent_of(exchange), guard_before());
    bring_in(exchange, sent_of(exchange), guard_behind(sent));
}

/* Brings what is looked at to the memory of the host. */
static void fetch(const struct routine *routine, const struct exchange *exchange)
{
    size_t received = (size_t)routine->receives(exchange) * element_size(exchange);
    bring_out(exchange, received_of(exchange), with_guards(received));
    bring_out(exchange, sent_of(exchange), guard_before());
    bring_out(exchange, sent_of(exchange), guard_behind(bytes_sent(routine, exchange)));
}

struct finding buffers_verify(const struct routine *routine, const struct exchange *exchange,
                              const struct pattern *pattern)
{
    size_t count = (size_t)routine->receives(exchange);
    fetch(routine, exchange);
    bool known = image_matches(exchange->image, exchange->checked, count * element_size(exchange));
    for (size_t i = 0; !known && i < count; i++) {
        double expected = routine->expected(pattern, exchange, i), received = element_get(exchange, exchange->checked, i);
        if (memcmp(&received, &expected, sizeof received) != 0)
            return (struct finding){true, false, (int64_t)i, expected, received, 0};
    }
    struct finding found = check_guards(exchange, exchange->checked, count, false);
    return found.wrong ? found : check_guards(exchange, exchange->filled, (size_t)routine->sends(exchange), true);
}
