#include "alone.h"
#include "routine.h"

/* --- how many blocks of `count` elements a buffer holds --- */

static int none(const struct exchange *x)
{
    (void)x;
    return 0;
}

static int one(const struct exchange *x)
{
    (void)x;
    return 1;
}

static int all(const struct exchange *x)
{
    return x->processes;
}

static int root_one(const struct exchange *x)
{
    return x->rank == 0;
}

static int root_all(const struct exchange *x)
{
    return x->rank == 0 ? x->processes : 0;
}

static int others_one(const struct exchange *x)
{
    return x->rank != 0;
}

static int pair_one(const struct exchange *x)
{
    return x->partner >= 0;
}

/* --- what is timed --- */

/* The lower rank of a pair serves. */
static void pingpong(const struct exchange *x)
{
    enum { PING = 1, PONG };
    if (x->rank < x->partner) {
        MPI_Send(x->send, x->count, MPI_DOUBLE, x->partner, PING, x->comm);
        MPI_Recv(x->receive, x->count, MPI_DOUBLE, x->partner, PONG, x->comm, MPI_STATUS_IGNORE);
    } else if (x->partner >= 0) {
        MPI_Recv(x->receive, x->count, MPI_DOUBLE, x->partner, PING, x->comm, MPI_STATUS_IGNORE);
        MPI_Send(x->send, x->count, MPI_DOUBLE, x->partner, PONG, x->comm);
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
    MPI_Sendrecv(x->send, x->count, MPI_DOUBLE, right(x), 0, x->receive, x->count, MPI_DOUBLE, left(x), 0,
                 x->comm, MPI_STATUS_IGNORE);
}

static void barrier(const struct exchange *x)
{
    MPI_Barrier(x->comm);
}

static void bcast(const struct exchange *x)
{
    MPI_Bcast(x->rank == 0 ? x->send : x->receive, x->count, MPI_DOUBLE, 0, x->comm);
}

static void scatter(const struct exchange *x)
{
    MPI_Scatter(x->send, x->count, MPI_DOUBLE, x->receive, x->count, MPI_DOUBLE, 0, x->comm);
}

static void gather(const struct exchange *x)
{
    MPI_Gather(x->send, x->count, MPI_DOUBLE, x->receive, x->count, MPI_DOUBLE, 0, x->comm);
}

static void allgather(const struct exchange *x)
{
    MPI_Allgather(x->send, x->count, MPI_DOUBLE, x->receive, x->count, MPI_DOUBLE, x->comm);
}

static void alltoall(const struct exchange *x)
{
    MPI_Alltoall(x->send, x->count, MPI_DOUBLE, x->receive, x->count, MPI_DOUBLE, x->comm);
}

static void reduce(const struct exchange *x)
{
    MPI_Reduce(x->send, x->receive, x->count, MPI_DOUBLE, x->op, 0, x->comm);
}

static void allreduce(const struct exchange *x)
{
    MPI_Allreduce(x->send, x->receive, x->count, MPI_DOUBLE, x->op, x->comm);
}

static void scan(const struct exchange *x)
{
    MPI_Scan(x->send, x->receive, x->count, MPI_DOUBLE, x->op, x->comm);
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

/* --- the table --- */

#define MESSAGE "the message"
#define VECTOR "the vector of one rank"
#define BLOCK "what one rank sends to or receives from one other"
#define COPY "what one rank copies"
#define NUMBERS "numbers of 8 bytes, for each of which one rank does the work once"

/* Name, byte convention, sizes {luecke (both papers), luecke2001, luecke2003; if in none of them, on request};
 * blocks sent, blocks received, what is timed, what must arrive, reduction, scaling, pairing. */
/* clang-format off */
const struct routine routines[] = {
    {"pingpong", MESSAGE, {"8,10000,1000000", "8,1000000", "8,10000,1000000"},
     pair_one, pair_one, pingpong, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROOT},
    {"rightshift", MESSAGE, {"8,10000,1000000", "8,10000", "8,10000,1000000"},
     one, one, rightshift, from_left, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"barrier", "nothing", {"0", "0", NULL},
     none, none, barrier, from_root, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"bcast", VECTOR, {"8,10000,1000000", "8,1000000", "8,10000,1000000"},
     root_one, others_one, bcast, from_root, COMBINE_NOTHING, SCALING_LOG2, PAIRING_NONE},
    {"scatter", BLOCK, {"8,1000,10000,100000", "8,10000", "8,1000,100000"},
     root_all, one, scatter, own_block_of_root, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"gather", BLOCK, {"8,1000,10000,100000", "8,10000", "8,1000,100000"},
     one, root_all, gather, block_of_each, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"allgather", BLOCK, {"8,10000", "8,10000", NULL},
     one, all, allgather, block_of_each, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"alltoall", BLOCK, {"8,1000,10000,100000", "8,10000", "8,1000,100000"},
     all, all, alltoall, own_block_of_each, COMBINE_NOTHING, SCALING_LINEAR, PAIRING_NONE},
    {"reduce_sum", VECTOR, {"8,10000,1000000", "8,1000000", "8,10000,1000000"},
     one, root_one, reduce, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"reduce_min", VECTOR, {"8,10000,1000000", "8,1000000", NULL},
     one, root_one, reduce, min_of_all, COMBINE_MIN, SCALING_NONE, PAIRING_NONE},
    {"reduce_max", VECTOR, {"8,10000,1000000", "8,1000000", NULL},
     one, root_one, reduce, max_of_all, COMBINE_MAX, SCALING_NONE, PAIRING_NONE},
    {"allreduce_sum", VECTOR, {"8,1000000", "8,1000000", NULL},
     one, one, allreduce, sum_of_all, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"allreduce_min", VECTOR, {"8,1000000", "8,1000000", NULL},
     one, one, allreduce, min_of_all, COMBINE_MIN, SCALING_NONE, PAIRING_NONE},
    {"allreduce_max", VECTOR, {"8,1000000", "8,1000000", NULL},
     one, one, allreduce, max_of_all, COMBINE_MAX, SCALING_NONE, PAIRING_NONE},
    {"scan_sum", VECTOR, {"8,1000000", "8,1000000", NULL},
     one, one, scan, sum_up_to_own, COMBINE_SUM, SCALING_NONE, PAIRING_NONE},
    {"scan_min", VECTOR, {"8,1000000", "8,1000000", NULL},
     one, one, scan, min_up_to_own, COMBINE_MIN, SCALING_NONE, PAIRING_NONE},
    {"scan_max", VECTOR, {"8,1000000", "8,1000000", NULL},
     one, one, scan, max_up_to_own, COMBINE_MAX, SCALING_NONE, PAIRING_NONE},
    {"tournament", MESSAGE, {NULL, NULL, NULL, "8,1000000"},
     pair_one, pair_one, pingpong, from_partner, COMBINE_NOTHING, SCALING_NONE, PAIRING_ROUND},
    {"control_compute", NUMBERS, {NULL, NULL, NULL, "8"},
     one, one, alone_compute, alone_computed, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"control_memory", COPY, {NULL, NULL, NULL, "1000000"},
     one, one, alone_copy, alone_copied, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
    {"control_timer", NUMBERS, {NULL, NULL, NULL, "8"},
     none, one, alone_read_clock, alone_clock_read, COMBINE_NOTHING, SCALING_NONE, PAIRING_NONE},
};
/* clang-format on */
const size_t routine_count = sizeof routines / sizeof routines[0];
