#include "compositions.h"

#include <string.h>

enum { TAG = 5 };

uint64_t share(const struct exchange *x)
{
    uint64_t processes = (uint64_t)x->processes;
    return ((uint64_t)x->count + processes - 1) / processes;
}

uint64_t all_shares(const struct exchange *x)
{
    return share(x) * (uint64_t)x->processes;
}

uint64_t part(const struct exchange *x)
{
    return (uint64_t)(part_offset(x, x->rank + 1) - part_offset(x, x->rank));
}

/* Where the block of a rank begins, if blocks have so many elements. */
static void *block_at(const struct exchange *x, double *buffer, int rank, int elements)
{
    return (char *)buffer + (size_t)rank * (size_t)elements * element_size(x);
}

static size_t block_bytes(const struct exchange *x)
{
    return (size_t)x->count * element_size(x);
}

void bcast_as_scatter_allgather(const struct exchange *x)
{
    int each = (int)share(x);
    double *whole = x->rank == 0 ? x->send : x->receive;
    void *own = x->rank == 0 ? MPI_IN_PLACE : block_at(x, whole, x->rank, each);
    MPI_Scatter(x->send, each, x->type, own, each, x->type, 0, x->comm);
    MPI_Allgather(MPI_IN_PLACE, each, x->type, whole, each, x->type, x->comm);
}

void bcast_as_allgatherv(const struct exchange *x)
{
    double *whole = x->rank == 0 ? x->send : x->receive;
    MPI_Allgatherv(MPI_IN_PLACE, 0, x->type, whole, x->single.counts, x->single.offsets, x->type, x->comm);
}

void bcast_as_sends(const struct exchange *x)
{
    if (x->rank != 0)
        MPI_Recv(x->receive, x->count, x->type, 0, TAG, x->comm, MPI_STATUS_IGNORE);
    for (int rank = 1; x->rank == 0 && rank < x->processes; rank++)
        MPI_Send(x->send, x->count, x->type, rank, TAG, x->comm);
}

void scatter_as_bcast(const struct exchange *x)
{
    MPI_Bcast(x->rank == 0 ? x->send : x->receive, x->count * x->processes, x->type, 0, x->comm);
}

void scatter_as_sends(const struct exchange *x)
{
    if (x->rank != 0) {
        MPI_Recv(x->receive, x->count, x->type, 0, TAG, x->comm, MPI_STATUS_IGNORE);
        return;
    }
    for (int rank = 1; rank < x->processes; rank++)
        MPI_Send(block_at(x, x->send, rank, x->count), x->count, x->type, rank, TAG, x->comm);
    memcpy(x->receive, x->send, block_bytes(x));
}

void scatter_as_scatterv(const struct exchange *x)
{
    MPI_Scatterv(x->send, x->equal.counts, x->equal.offsets, x->type, x->receive, x->count, x->type, 0, x->comm);
}

void gather_as_gatherv(const struct exchange *x)
{
    MPI_Gatherv(x->send, x->count, x->type, x->receive, x->equal.counts, x->equal.offsets, x->type, 0, x->comm);
}

/* The own block among zeros in the receive buffer: the sum over all ranks has the block of each. */
static void pad_with_zeros(const struct exchange *x)
{
    memset(x->receive, 0, block_bytes(x) * (size_t)x->processes);
    memcpy(block_at(x, x->receive, x->rank, x->count), x->send, block_bytes(x));
}

void gather_as_reduce(const struct exchange *x)
{
    pad_with_zeros(x);
    MPI_Reduce(x->rank == 0 ? MPI_IN_PLACE : x->receive, x->receive, x->count * x->processes, x->type, x->op, 0,
               x->comm);
}

void gather_as_sends(const struct exchange *x)
{
    if (x->rank != 0) {
        MPI_Send(x->send, x->count, x->type, 0, TAG, x->comm);
        return;
    }
    memcpy(x->receive, x->send, block_bytes(x));
    for (int rank = 1; rank < x->processes; rank++)
        MPI_Recv(block_at(x, x->receive, rank, x->count), x->count, x->type, rank, TAG, x->comm, MPI_STATUS_IGNORE);
}

void allgather_as_gather_bcast(const struct exchange *x)
{
    MPI_Gather(x->send, x->count, x->type, x->receive, x->count, x->type, 0, x->comm);
    MPI_Bcast(x->receive, x->count * x->processes, x->type, 0, x->comm);
}

void allgather_as_allgatherv(const struct exchange *x)
{
    MPI_Allgatherv(x->send, x->count, x->type, x->receive, x->equal.counts, x->equal.offsets, x->type, x->comm);
}

void allgather_as_allreduce(const struct exchange *x)
{
    pad_with_zeros(x);
    MPI_Allreduce(MPI_IN_PLACE, x->receive, x->count * x->processes, x->type, x->op, x->comm);
}

void allgather_as_alltoall(const struct exchange *x)
{
    for (int rank = 1; rank < x->processes; rank++)
        memcpy(block_at(x, x->send, rank, x->count), x->send, block_bytes(x));
    MPI_Alltoall(x->send, x->count, x->type, x->receive, x->count, x->type, x->comm);
}

void alltoall_as_alltoallv(const struct exchange *x)
{
    MPI_Alltoallv(x->send, x->equal.counts, x->equal.offsets, x->type, x->receive, x->equal.counts,
                  x->equal.offsets, x->type, x->comm);
}

/* With each rank in turn: to the one that is `step` above, from the one that is `step` below. */
void alltoall_as_sendrecv(const struct exchange *x)
{
    memcpy(block_at(x, x->receive, x->rank, x->count), block_at(x, x->send, x->rank, x->count), block_bytes(x));
    for (int step = 1; step < x->processes; step++) {
        int above = (x->rank + step) % x->processes;
        int below = (x->rank - step + x->processes) % x->processes;
        MPI_Sendrecv(block_at(x, x->send, above, x->count), x->count, x->type, above, TAG,
                     block_at(x, x->receive, below, x->count), x->count, x->type, below, TAG, x->comm,
                     MPI_STATUS_IGNORE);
    }
}

void reduce_as_reduce_scatter_gather(const struct exchange *x)
{
    int each = (int)share(x);
    MPI_Reduce_scatter_block(x->send, x->receive, each, x->type, x->op, x->comm);
    MPI_Gather(x->rank == 0 ? MPI_IN_PLACE : x->receive, each, x->type, x->receive, each, x->type, 0, x->comm);
}

void reduce_as_reduce_scatter_gatherv(const struct exchange *x)
{
    MPI_Reduce_scatter(x->send, x->receive, x->split.counts, x->type, x->op, x->comm);
    MPI_Gatherv(x->rank == 0 ? MPI_IN_PLACE : x->receive, x->split.counts[x->rank], x->type, x->receive, x->split.counts,
                x->split.offsets, x->type, 0, x->comm);
}

void allreduce_as_reduce_bcast(const struct exchange *x)
{
    MPI_Reduce(x->send, x->receive, x->count, x->type, x->op, 0, x->comm);
    MPI_Bcast(x->receive, x->count, x->type, 0, x->comm);
}

void allreduce_as_reduce_scatter_allgather(const struct exchange *x)
{
    int each = (int)share(x);
    MPI_Reduce_scatter_block(x->send, block_at(x, x->receive, x->rank, each), each, x->type, x->op, x->comm);
    MPI_Allgather(MPI_IN_PLACE, each, x->type, x->receive, each, x->type, x->comm);
}

void allreduce_as_reduce_scatter_allgatherv(const struct exchange *x)
{
    double *own = x->receive + part_offset(x, x->rank); /* of numbers: it is a reduction */
    MPI_Reduce_scatter(x->send, own, x->split.counts, x->type, x->op, x->comm);
    MPI_Allgatherv(MPI_IN_PLACE, 0, x->type, x->receive, x->split.counts, x->split.offsets, x->type, x->comm);
}

void reduce_scatter_block_as_reduce_scatter(const struct exchange *x)
{
    MPI_Reduce(x->send, x->receive, x->count * x->processes, x->type, x->op, 0, x->comm);
    MPI_Scatter(x->receive, x->count, x->type, x->rank == 0 ? MPI_IN_PLACE : x->receive, x->count, x->type, 0,
                x->comm);
}

void reduce_scatter_as_reduce_scatterv(const struct exchange *x)
{
    MPI_Reduce(x->send, x->receive, x->count * x->processes, x->type, x->op, 0, x->comm);
    MPI_Scatterv(x->receive, x->equal.counts, x->equal.offsets, x->type,
                 x->rank == 0 ? MPI_IN_PLACE : x->receive, x->count, x->type, 0, x->comm);
}

void reduce_scatter_as_allreduce(const struct exchange *x)
{
    MPI_Allreduce(x->send, x->receive, x->count * x->processes, x->type, x->op, x->comm);
}

void scan_as_exscan_reduce_local(const struct exchange *x)
{
    MPI_Exscan(x->send, x->receive, x->count, x->type, x->op, x->comm);
    if (x->rank == 0)
        memcpy(x->receive, x->send, block_bytes(x));
    else
        MPI_Reduce_local(x->send, x->receive, x->count, x->type, x->op);
}
