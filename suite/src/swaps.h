/* Messages both ways between two ranks, by several protocols: the four experiments of COMMTEST, which differ in who
 * swaps with whom (enum pairing); and ping-pong by several modes of sending. */
#ifndef MPICOST_SWAPS_H
#define MPICOST_SWAPS_H

#include "buffers.h"
#include "routine.h"

/* What this rank has is sent to `target`, and received from `partner`. */
void swap_sendrecv(const struct exchange *x);
void swap_nonblocking(const struct exchange *x); /* Irecv, Isend, Waitall */
void swap_ordered(const struct exchange *x);     /* Send and Recv, in an order in which nobody waits for ever */
void swap_synchronous(const struct exchange *x); /* Irecv, Ssend, Wait */
void swap_persistent(const struct exchange *x);  /* Startall and Waitall of requests made beforehand */

/* The lower rank of a pair serves. */
void pingpong_synchronous(const struct exchange *x); /* Ssend */
void pingpong_buffered(const struct exchange *x);    /* Bsend, into room that is there beforehand */

/* Bytes of room for messages that are buffered until they are on their way; 0 if none are. */
size_t swap_room(const struct routine *routine, uint64_t bytes);

/* What an operation needs before its first call and gives up after its last one, outside of what is timed. */
void swap_open(const struct routine *routine, const struct exchange *x, const struct buffers *buffers);
void swap_close(const struct routine *routine, const struct exchange *x);

#endif
