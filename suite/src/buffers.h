/* The send and the receive buffer of this rank: what fills them, and what must be in them. */
#ifndef MPICOST_BUFFERS_H
#define MPICOST_BUFFERS_H

#include <stdbool.h>
#include <stddef.h>

#include "cooling.h"
#include "memory.h"
#include "routine.h"

enum { GUARD_BYTES = 64 }; /* behind the received data; nobody may write to them */
enum { POISON = -1 };      /* fills the receive buffer before a trial: the pattern has no negative values */

struct buffers {
    double *send;
    double *receive;
    size_t send_bytes;
    size_t receive_bytes; /* with the guard */
    int *counts;          /* of the blocks of struct exchange */
    int processes;
    void *room; /* for buffered sends */
    size_t room_bytes;
};

/* An element that is not what it must be. */
struct finding {
    bool wrong;
    size_t index; /* in the receive buffer; the lowest */
    double expected, received;
};

/* Bytes that a rank needs in each buffer for the case; false if they do not fit into size_t. */
bool buffers_needed(const struct routine *routine, const struct exchange *exchange, size_t *send,
                    size_t *receive);

/* Room for the largest of all cases, allocated once. False if there is no memory. */
bool buffers_open(struct buffers *buffers, struct memory *memory, const struct need *need, int processes);
void buffers_close(struct buffers *buffers, struct memory *memory);

/* Bytes of the counts and offsets of all ranks. */
size_t buffers_counts_needed(int processes);

/* Gives the case its buffers, counts and offsets. */
void buffers_assign(const struct buffers *buffers, struct exchange *exchange);

/* What of the send and of the receive buffer the case uses, the guard included. */
void buffers_span(struct span spans[2], const struct routine *routine, const struct exchange *exchange);

/* Fills the send buffer with this rank's data. */
void buffers_fill(const struct routine *routine, const struct exchange *exchange,
                  const struct pattern *pattern);

/* Overwrites the receive buffer and its guard with a value that no routine yields. */
void buffers_poison(const struct routine *routine, const struct exchange *exchange);

/* Compares every element received, and the guard, with what it must be. */
struct finding buffers_verify(const struct routine *routine, const struct exchange *exchange,
                              const struct pattern *pattern);

#endif
