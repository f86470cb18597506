/* How the ranks talk about the measurement itself: a broadcast, a maximum and a barrier of our own,
 * made of point-to-point messages only. No collective under test is trusted to report on itself, and
 * every MPI library is synchronised by the same algorithm. */
#ifndef MPICOST_CONTROL_H
#define MPICOST_CONTROL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

struct control {
    MPI_Comm comm; /* a duplicate of MPI_COMM_WORLD */
    int rank;
    int size;
};

void control_open(struct control *control);
void control_close(struct control *control);

/* Copies `values` of rank 0 to every rank: binomial tree. */
void control_broadcast(const struct control *control, int64_t *values, int count);

/* Leaves the maximum over ranks in `values` of rank 0, garbage in those of the others. `work` holds
 * `count` values too. */
void control_maximum(const struct control *control, int64_t *values, int64_t *work, int count);

/* The largest `value` of any rank, on every rank. */
int64_t control_all_maximum(const struct control *control, int64_t value);

/* The smallest `value` of any rank, on every rank. `value` must be above INT64_MIN. */
int64_t control_all_minimum(const struct control *control, int64_t value);

/* Dissemination barrier: in round k each rank sends to rank + 2^k and receives from rank - 2^k. */
void control_barrier(const struct control *control);

/* Move `bytes` bytes between two ranks. */
void control_send(const struct control *control, int to, const void *data, size_t bytes);
void control_receive(const struct control *control, int from, void *data, size_t bytes);

#endif
