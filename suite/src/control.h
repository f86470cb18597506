/* How the ranks talk about the measurement itself: a broadcast, a maximum and a barrier of our own,
 * made of point-to-point messages only. No collective under test is trusted to report on itself, and
 * every MPI library is synchronised by the same algorithm. */
#ifndef MPICOST_CONTROL_H
#define MPICOST_CONTROL_H

#include <mpi.h>
#include <stddef.h>
#include <stdint.h>

enum { TAG_TREE = 1, TAG_BARRIER, TAG_BYTES, TAG_GATHER, TAG_CLOCK, TAG_REACH };

struct control {
    MPI_Comm comm; /* used for nothing else */
    int rank;
    int size;
};

/* `comm` becomes ours, to be freed by control_close; it may be MPI_COMM_NULL, of which nobody is part. */
void control_open(struct control *control, MPI_Comm comm);
void control_close(struct control *control);

/* All that follows but the barrier and the last two goes along a binomial tree with rank 0 at its root. The
 * distance from a rank to its parent is its lowest set bit; its children are at all smaller powers of two, and
 * what lies below a child are the ranks from it up to the next. Rank 0 has no parent, and the distance is the
 * first power of two that is not below the size. */
int control_distance(const struct control *control);

/* Copies `values` of rank 0 to every rank. */
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
