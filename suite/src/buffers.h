/* The send and the receive buffer of this rank: what fills them, and what must be in them. */
#ifndef MPICOST_BUFFERS_H
#define MPICOST_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#include "cooling.h"
#include "device.h"
#include "image.h"
#include "memory.h"
#include "plan.h"
#include "routine.h"

enum { GUARD_BYTES = 4096 }; /* before and behind what a case uses of each buffer; nobody may write to them */
enum { EVICTED_GUARD = 64 }; /* of them, behind the received data: every case has a line to evict */
enum { POISON = -1 };        /* fills the receive buffer before a trial */

struct buffers {
    double *send[MEMORY_KINDS]; /* indexed by enum memory_kind; NULL where no case needs it */
    double *receive[MEMORY_KINDS];
    const struct device *device;
    size_t send_bytes;
    size_t receive_bytes; /* both with the guards */
    int *counts;          /* of the blocks of struct exchange */
    int processes;
    void *room; /* for buffered sends */
    size_t room_bytes;
    struct image image;
    size_t image_bytes;
};

/* An element that is not what it must be. */
struct finding {
    bool wrong;
    bool sent;     /* whether it is around the send buffer; else of or around the receive buffer */
    int64_t index; /* the lowest; below 0 and above the last it is of a guard, of which one byte is told */
    double expected, received;
    int64_t early; /* ns by which the rank left a barrier before another had come; 0: something else is wrong */
};

/* Bytes that a rank needs in each buffer for the case; false if they do not fit into size_t. */
bool buffers_needed(const struct routine *routine, const struct exchange *exchange, size_t *send,
                    size_t *receive);

/* Room for the largest of all cases, allocated once. False if the host has no memory. */
bool buffers_open(struct buffers *buffers, struct memory *memory, const struct need *need, int processes);

/* Room for the same on a GPU, for each kind of memory that a case needs. False if it has none. */
bool buffers_open_device(struct buffers *buffers, const struct device *device, const struct plan *plan,
                         struct outcome *outcome);
void buffers_close(struct buffers *buffers, struct memory *memory);

/* Bytes of the counts and offsets of all ranks. */
size_t buffers_counts_needed(int processes);

/* Gives the case its buffers of these kinds, counts and offsets. */
void buffers_assign(struct buffers *buffers, struct exchange *exchange);

/* What of the send and of the receive buffer the case uses, the guard included. */
void buffers_span(struct span spans[2], const struct routine *routine, const struct exchange *exchange);

/* The data that the routine can be verified with to the last bit. What it adds up may be added for each call. */
struct pattern buffers_pattern(const struct routine *routine, const struct exchange *exchange, uint64_t seed);

/* Fills the send buffer with this rank's data. */
void buffers_fill(const struct routine *routine, const struct exchange *exchange,
                  const struct pattern *pattern);

/* Makes new data of it, of another turn. What the MPI has done to it stays and is seen where it is received. */
void buffers_renew(const struct routine *routine, const struct exchange *exchange, struct pattern *pattern, uint64_t turn);

/* Overwrites the receive buffer with a value that no routine yields, and the guards. */
void buffers_poison(const struct routine *routine, const struct exchange *exchange);

/* Compares every bit received, and the guards, with what it must be. */
struct finding buffers_verify(const struct routine *routine, const struct exchange *exchange,
                              const struct pattern *pattern);

#endif
