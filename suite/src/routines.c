#include <limits.h>

#include "alone.h"
#include "buffers.h"
#include "compositions.h"
#include "kernel.h"
#include "routine.h"
#include "swaps.h"

/* --- how many elements a buffer holds --- */

static uint64_t none(const struct exchange *x)
{
    (void)x;
    return 0;
}

static uint64_t one(const struct exchange *x)
{
    return (uint64_t)x->count;
}

static uint64_t all(const struct exchange *x)
{
    return one(x) * (uint64_t)x->processes;
}

static uint64_t root_one(const struct exchange *x)
{
    return x->rank == 0 ? one(x) : 0;
}

static uint64_t root_all(const struct exchange *x)
{
    return x->rank == 0 ? all(x) : 0;
}

static uint64_t others_one(const struct exchange *x)
{
    return x->rank == 0 ? 0 : one(x);
}

static uint64_t pair_one(const struct exchange *x)
{
    return x->partner >= 0 ? one(x) : 0;
}

/* All blocks as one message. */
static uint64_t all_at_once(const struct exchange *x)
{
    return all(x) <= INT_MAX ? all(x) : ELEMENTS_MOST;
}

static uint64_t root_all_at_once(const struct exchange *x)
{
    return x->rank == 0 ? all_at_once(x) : 0;
}

static uint64_t others_all_at_once(const struct exchange *x)
{
    return x->rank == 0 ? 0 : all_at_once(x);
}

static uint64_t root_all_others_one(const struct exchange *x)
{
    return x->rank == 0 ? all_at_once(x) : one(x);
}

static uint64_t root_shares(const struct exchange *x)
{
    return x->rank == 0 ? all_shares(x) : 0;
}

static uint64_t others_shares(const struct exchange *x)
{
    return x->rank == 0 ? 0 : all_shares(x);
}

static uint64_t root_shares_others_share(const struct exchange *x)
{
    return x->rank == 0 ? all_shares(x) : share(x);
}

static uint64_t root_one_others_part(const struct exchange *x)
{
    return x->rank == 0 ? one(x) : part(x);
}

/* --- what is timed --- */

/* The lower rank of a pair serves. */
static void pingpong(const struct exchange *x)
{
    enum { PING = 1, PONG };
    if (x->rank < x->partner) {
        MPI_Send(x->send, x->count, x->type, x->partner, PING, x->comm);
        MPI_Recv(x->receive, x->count, x->type, x->partner, PONG, x->comm, MPI_STATUS_IGNORE);
    } else if (x->partner >= 0) {
        MPI_Recv(x->receive, x->count, x->type, x->partner, PING, x->comm, MPI_STATUS_IGNORE);
        MPI_Send(x->send, x->count, x->type, x->partner, PONG, x->comm);
    }
}

static int left(const struct exchange *x)
{
    return x->rank > 0 ? x->rank - 1 : x->processes - 1;
}

static int right(const struct exchange *x)
{
    return x->rank + 1 < x->processes ? x->rank + 1 : 0;
}

static void rightshift(const struct exchange *x)
{
    MPI_Sendrecv(x->send, x->count, x->type, right(x), 0, x->receive, x->count, x->type, left(x), 0,
                 x->comm, MPI_STATUS_IGNORE);
}

static void barrier(const struct exchange *x)
{
    MPI_Barrier(x->comm);
}

static void bcast(const struct exchange *x)
{
    MPI_Bcast(x->rank == 0 ? x->send : x->receive, x->count, x->type, 0, x->comm);
}

static void scatter(const struct exchange *x)
{
    MPI_Scatter(x->send, x->count, x->type, x->receive, x->count, x->type, 0, x->comm);
}

static void gather(const struct exchange *x)
{
    MPI_Gather(x->send, x->count, x->type, x->receive, x->count, x->type, 0, x->comm);
}

static void allgather(const struct exchange *x)
{
    MPI_Allgather(x->send, x->count, x->type, x->receive, x->count, x->type, x->comm);
}

static void alltoall(const struct exchange *x)
{
    MPI_Alltoall(x->send, x->count, x->type, x->receive, x->count, x->type, x->comm);
}

static void reduce(const struct exchange *x)
{
    MPI_Reduce(x->send, x->receive, x->count, x->type, x->op, 0, x->comm);
}

static void allreduce(const struct exchange *x)
{
    MPI_Allreduce(x->send, x->receive, x->count, x->type, x->op, x->comm);
}

static void scan(const struct exchange *x)
{
    MPI_Scan(x->send, x->receive, x->count, x->type, x->op, x->comm);
}

static void reduce_scatter(const struct exchange *x)
{
    MPI_Reduce_scatter(x->send, x->receive, x->equal.counts, x->type, x->op, x->comm);
}

static void reduce_scatter_block(const struct exchange *x)
{
    MPI_Reduce_scatter_block(x->send, x->receive, x->count, x->type, x->op, x->comm);
}

static void reduce_local(const struct exchange *x)
{
    MPI_Reduce_local(x->send, x->receive, x->count, x->type, x->op);
}

/* --- what must have been received --- */

static double from_partner(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_value(pattern, x->partner, index);
}

static double from_left(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_value(pattern, left(x), index);
}

static double from_root(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    (void)x;
    return pattern_value(pattern, 0, index);
}

static double own_block_of_root(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_value(pattern, 0, (size_t)x->rank * (size_t)x->count + index);
}

static double block_of_each(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    size_t count = (size_t)x->count;
    return pattern_value(pattern, (int)(index / count), index % count);
}

static double own_block_of_each(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    size_t count = (size_t)x->count;
    return pattern_value(pattern, (int)(index / count), (size_t)x->rank * count + index % count);
}

static double sum_of_all(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_sum(pattern, x->processes, index);
}

static double min_of_all(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_min(pattern, x->processes, index);
}

static double max_of_all(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_max(pattern, x->processes, index);
}

static double own_block_of_sums(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_sum(pattern, x->processes, (size_t)x->rank * (size_t)x->count + index);
}

static double own_share_of_sums(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_sum(pattern, x->processes, (size_t)x->rank * (size_t)share(x) + index);
}

static double own_part_of_sums(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_sum(pattern, x->processes, (size_t)part_offset(x, x->rank) + index);
}

/* Of the root the blocks of all; of the others their own among zeros, where the sum was put together. */
static double block_of_each_at_root(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    bool zero = x->rank != 0 && index / (size_t)x->count != (size_t)x->rank;
    return zero ? 0 : block_of_each(pattern, x, index);
}

static double sum_up_to_own(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_sum(pattern, x->rank + 1, index);
}

static double min_up_to_own(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_min(pattern, x->rank + 1, index);
}

static double max_up_to_own(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_max(pattern, x->rank + 1, index);
}

/* What the receive buffer held, and this rank's own data once for each call. */
static double own_added_up(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return POISON + (double)x->calls * pattern_value(pattern, x->rank, index);
}

/* --- the table --- */

#define MESSAGE "the message"
#define VECTOR "the vector of one rank"
#define BLOCK "what one rank sends to or receives from one other"
#define COPY "what one rank copies"
#define POWERS "1,2,4,8,16,32,64,128,256,512,1024,2048,4096,8192,16384,32768" \
               ",65536,131072,262144,524288,1048576,2097152"
#define NUMBERS "numbers of 8 bytes, for each of which one rank does the work once"

/* An application kernel: what it is of, its name, the bytes of its data, and what is timed. */
#define KERNEL(of, name, bytes, timed) \
    {name, DATA, bytes, of##_memory, none, timed, NULL, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE, &of##_kernel}
#define DATA "the data of a kernel"

/* Name, byte convention, sizes; elements sent, elements received, what is timed, what must arrive, reduction,
 * scaling, pairing. */
/* clang-format off */
const struct routine routines[] = {
    {"pingpong", MESSAGE, "8,10000,1000000",
     pair_one, pair_one, pingpong, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROOT},
    {"rightshift", MESSAGE, "8,10000,1000000",
     one, one, rightshift, from_left, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"barrier", "nothing", "0",
     none, none, barrier, from_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"bcast", VECTOR, "8,10000,1000000",
     root_one, others_one, bcast, from_root, COMBINE_NOTHING, SCALING_LOG2, PAIRING_NONE},
    {"scatter", BLOCK, "8,1000,10000,100000",
     root_all, one, scatter, own_block_of_root, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"gather", BLOCK, "8,1000,10000,100000",
     one, root_all, gather, block_of_each, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"allgather", BLOCK, "8,10000",
     one, all, allgather, block_of_each, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"alltoall", BLOCK, "8,1000,10000,100000",
     all, all, alltoall, own_block_of_each, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"reduce_sum", VECTOR, "8,10000,1000000",
     one, root_one, reduce, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_min", VECTOR, "8,10000,1000000",
     one, root_one, reduce, min_of_all, COMBINE_MIN, SCALING_NONE, PAIRING_NONE},
    {"reduce_max", VECTOR, "8,10000,1000000",
     one, root_one, reduce, max_of_all, COMBINE_MAX, SCALING_NONE, PAIRING_NONE},
    {"allreduce_sum", VECTOR, "8,1000000",
     one, one, allreduce, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"allreduce_min", VECTOR, "8,1000000",
     one, one, allreduce, min_of_all, COMBINE_MIN, SCALING_NONE, PAIRING_NONE},
    {"allreduce_max", VECTOR, "8,1000000",
     one, one, allreduce, max_of_all, COMBINE_MAX, SCALING_NONE, PAIRING_NONE},
    {"scan_sum", VECTOR, "8,1000000",
     one, one, scan, sum_up_to_own, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"scan_min", VECTOR, "8,1000000",
     one, one, scan, min_up_to_own, COMBINE_MIN, SCALING_NONE, PAIRING_NONE},
    {"scan_max", VECTOR, "8,1000000",
     one, one, scan, max_up_to_own, COMBINE_MAX, SCALING_NONE, PAIRING_NONE},
    {"tournament", MESSAGE, "8,1000000",
     pair_one, pair_one, pingpong, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROUND},
    {"control_compute", NUMBERS, "8",
     one, one, alone_compute, alone_computed, COMBINE_ALONE, SCALING_NONE, PAIRING_NONE},
    {"control_memory", COPY, "1000000",
     one, one, alone_copy, alone_copied, COMBINE_ALONE, SCALING_NONE, PAIRING_NONE},
    {"control_timer", NUMBERS, "8",
     none, one, alone_read_clock, alone_clock_read, COMBINE_ALONE, SCALING_NONE, PAIRING_NONE},
    {"reduce_scatter_sum", BLOCK, "8,10000",
     all, one, reduce_scatter, own_block_of_sums, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"bcast_as_scatter_allgather", VECTOR, "8,10000,1000000",
     root_shares, others_shares, bcast_as_scatter_allgather, from_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"bcast_as_sends", VECTOR, "8,10000,1000000",
     root_one, others_one, bcast_as_sends, from_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"scatter_as_bcast", BLOCK, "8,10000",
     root_all_at_once, others_all_at_once, scatter_as_bcast, from_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"scatter_as_sends", BLOCK, "8,10000",
     root_all, one, scatter_as_sends, own_block_of_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"gather_as_sends", BLOCK, "8,10000",
     one, root_all, gather_as_sends, block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"allgather_as_gather_bcast", BLOCK, "8,10000",
     one, all_at_once, allgather_as_gather_bcast, block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"allgather_as_alltoall", BLOCK, "8,10000",
     all, all, allgather_as_alltoall, block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"alltoall_as_sendrecv", BLOCK, "8,10000",
     all, all, alltoall_as_sendrecv, own_block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"reduce_sum_as_reduce_scatter_gather", VECTOR, "8,10000,1000000",
     all_shares, root_shares_others_share, reduce_as_reduce_scatter_gather, own_share_of_sums, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"allreduce_sum_as_reduce_bcast", VECTOR, "8,10000,1000000",
     one, one, allreduce_as_reduce_bcast, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"allreduce_sum_as_reduce_scatter_allgather", VECTOR, "8,10000,1000000",
     all_shares, all_shares, allreduce_as_reduce_scatter_allgather, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_scatter_sum_as_reduce_scatterv", BLOCK, "8,10000",
     all_at_once, root_all_others_one, reduce_scatter_as_reduce_scatterv, own_block_of_sums, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_scatter_sum_as_allreduce", BLOCK, "8,10000",
     all_at_once, all_at_once, reduce_scatter_as_allreduce, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"scan_sum_as_exscan_reduce_local", VECTOR, "8,10000,1000000",
     one, one, scan_as_exscan_reduce_local, sum_up_to_own, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_scatter_block_sum", BLOCK, "8,10000",
     all, one, reduce_scatter_block, own_block_of_sums, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"bcast_as_allgatherv", VECTOR, "8,10000,1000000",
     root_one, others_one, bcast_as_allgatherv, from_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"scatter_as_scatterv", BLOCK, "8,10000",
     root_all_at_once, one, scatter_as_scatterv, own_block_of_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"gather_as_gatherv", BLOCK, "8,10000",
     one, root_all_at_once, gather_as_gatherv, block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"gather_as_reduce", BLOCK, "8,10000",
     one, all_at_once, gather_as_reduce, block_of_each_at_root, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"allgather_as_allgatherv", BLOCK, "8,10000",
     one, all_at_once, allgather_as_allgatherv, block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"allgather_as_allreduce", BLOCK, "8,10000",
     one, all_at_once, allgather_as_allreduce, block_of_each, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"alltoall_as_alltoallv", BLOCK, "8,10000",
     all_at_once, all_at_once, alltoall_as_alltoallv, own_block_of_each, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"reduce_sum_as_reduce_scatter_gatherv", VECTOR, "8,10000,1000000",
     one, root_one_others_part, reduce_as_reduce_scatter_gatherv, own_part_of_sums, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"allreduce_sum_as_reduce_scatter_allgatherv", VECTOR, "8,10000,1000000",
     one, one, allreduce_as_reduce_scatter_allgatherv, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_scatter_block_sum_as_reduce_scatter", BLOCK, "8,10000",
     all_at_once, root_all_others_one, reduce_scatter_block_as_reduce_scatter, own_block_of_sums, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_local_sum", VECTOR, "8,10000,1000000",
     one, one, reduce_local, own_added_up, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"swap_first_sendrecv", MESSAGE, POWERS,
     pair_one, pair_one, swap_sendrecv, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_FIRST},
    {"swap_first_nonblocking", MESSAGE, POWERS,
     pair_one, pair_one, swap_nonblocking, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_FIRST},
    {"swap_first_ordered", MESSAGE, POWERS,
     pair_one, pair_one, swap_ordered, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_FIRST},
    {"swap_first_synchronous", MESSAGE, POWERS,
     pair_one, pair_one, swap_synchronous, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_FIRST},
    {"swap_first_persistent", MESSAGE, POWERS,
     pair_one, pair_one, swap_persistent, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_FIRST},
    {"swap_next_sendrecv", MESSAGE, POWERS,
     pair_one, pair_one, swap_sendrecv, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_NEXT},
    {"swap_next_nonblocking", MESSAGE, POWERS,
     pair_one, pair_one, swap_nonblocking, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_NEXT},
    {"swap_next_ordered", MESSAGE, POWERS,
     pair_one, pair_one, swap_ordered, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_NEXT},
    {"swap_next_synchronous", MESSAGE, POWERS,
     pair_one, pair_one, swap_synchronous, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_NEXT},
    {"swap_next_persistent", MESSAGE, POWERS,
     pair_one, pair_one, swap_persistent, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_NEXT},
    {"swap_half_sendrecv", MESSAGE, POWERS,
     pair_one, pair_one, swap_sendrecv, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_HALF},
    {"swap_half_nonblocking", MESSAGE, POWERS,
     pair_one, pair_one, swap_nonblocking, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_HALF},
    {"swap_half_ordered", MESSAGE, POWERS,
     pair_one, pair_one, swap_ordered, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_HALF},
    {"swap_half_synchronous", MESSAGE, POWERS,
     pair_one, pair_one, swap_synchronous, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_HALF},
    {"swap_half_persistent", MESSAGE, POWERS,
     pair_one, pair_one, swap_persistent, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_HALF},
    {"swap_ring_sendrecv", MESSAGE, POWERS,
     pair_one, pair_one, swap_sendrecv, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_RING},
    {"swap_ring_nonblocking", MESSAGE, POWERS,
     pair_one, pair_one, swap_nonblocking, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_RING},
    {"swap_ring_ordered", MESSAGE, POWERS,
     pair_one, pair_one, swap_ordered, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_RING},
    {"swap_ring_synchronous", MESSAGE, POWERS,
     pair_one, pair_one, swap_synchronous, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_RING},
    {"swap_ring_persistent", MESSAGE, POWERS,
     pair_one, pair_one, swap_persistent, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_RING},
    {"pingpong_standard", MESSAGE, POWERS,
     pair_one, pair_one, pingpong, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROOT},
    {"pingpong_synchronous", MESSAGE, POWERS,
     pair_one, pair_one, pingpong_synchronous, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROOT},
    {"pingpong_buffered", MESSAGE, POWERS,
     pair_one, pair_one, pingpong_buffered, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROOT},
    KERNEL(series, "series_A", "160000", series),
    KERNEL(series, "series_A_compute", "160000", series_compute),
    KERNEL(series, "series_B", "1600000", series),
    KERNEL(series, "series_B_compute", "1600000", series_compute),
    KERNEL(series, "series_C", "16000000", series),
    KERNEL(series, "series_C_compute", "16000000", series_compute),
    KERNEL(lufact, "lufact_A", "2000000", lufact),
    KERNEL(lufact, "lufact_A_compute", "2000000", lufact_compute),
    KERNEL(lufact, "lufact_B", "8000000", lufact),
    KERNEL(lufact, "lufact_B_compute", "8000000", lufact_compute),
    KERNEL(lufact, "lufact_C_own", "32000000", lufact),
    KERNEL(lufact, "lufact_C_own_compute", "32000000", lufact_compute),
    KERNEL(sor, "sor_A", "8000000", sor),
    KERNEL(sor, "sor_A_compute", "8000000", sor_compute),
    KERNEL(sor, "sor_B", "18000000", sor),
    KERNEL(sor, "sor_B_compute", "18000000", sor_compute),
    KERNEL(sor, "sor_C", "32000000", sor),
    KERNEL(sor, "sor_C_compute", "32000000", sor_compute),
    KERNEL(sparse, "sparse_A", "400000", sparse),
    KERNEL(sparse, "sparse_B", "800000", sparse),
    KERNEL(sparse, "sparse_C", "4000000", sparse),
    KERNEL(crypt, "crypt_A", "3000000", crypt_text),
    KERNEL(crypt, "crypt_A_compute", "3000000", crypt_compute),
    KERNEL(crypt, "crypt_B", "20000000", crypt_text),
    KERNEL(crypt, "crypt_B_compute", "20000000", crypt_compute),
    KERNEL(crypt, "crypt_C", "50000000", crypt_text),
    KERNEL(crypt, "crypt_C_compute", "50000000", crypt_compute),
};
#undef KERNEL
/* clang-format on */
const size_t routine_count = sizeof routines / sizeof routines[0];
