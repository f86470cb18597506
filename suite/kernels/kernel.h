/* The application kernels of the Java Grande Forum, by their definitions. A kernel is one file; each of its problems is
 * an entry of the table in src/routines.c, by size, whole and (`_compute`) without the return of the results to rank 0.
 *
 * All memory of a problem is the send buffer, `sends` elements of the rank. A trial: `prepare`, which nobody times; the
 * operation of the entry, a barrier at its end; `check`, which brings home what `_compute` has left. */
#ifndef MPICOST_KERNEL_H
#define MPICOST_KERNEL_H

#include <math.h>

#include "buffers.h"
#include "routine.h"

struct kernel {
    /* Makes the problem anew in the send buffer. Collective. */
    void (*prepare)(const struct exchange *exchange);
    /* Holds the result, on rank 0 at least, against the known one. Collective. */
    struct finding (*check)(const struct exchange *exchange);
};

extern const struct kernel series_kernel, lufact_kernel, sor_kernel, sparse_kernel, crypt_kernel;

/* Elements of the send buffer. */
uint64_t series_memory(const struct exchange *exchange);
uint64_t lufact_memory(const struct exchange *exchange);
uint64_t sor_memory(const struct exchange *exchange);
uint64_t sparse_memory(const struct exchange *exchange);
uint64_t crypt_memory(const struct exchange *exchange);

/* What is timed. */
void series(const struct exchange *exchange);
void series_compute(const struct exchange *exchange);
void lufact(const struct exchange *exchange);
void lufact_compute(const struct exchange *exchange);
void sor(const struct exchange *exchange);
void sor_compute(const struct exchange *exchange);
void sparse(const struct exchange *exchange);
void crypt_text(const struct exchange *exchange);
void crypt_compute(const struct exchange *exchange);

/* A part of something that is dealt out in blocks of one size; the last ranks have what is left, which may be nothing. */
struct part {
    int first, count;
};

static inline struct part part_of(int total, int block, int rank)
{
    int64_t first = (int64_t)rank * block;
    int64_t left = total - first;
    return (struct part){(int)(left > 0 ? first : total), (int)(left > block ? block : left > 0 ? left : 0)};
}

static inline int blocks_needed(int total, int size)
{
    return total / size + (total % size != 0);
}

/* No other order of summing makes more of a difference; NaN does not agree. */
static inline bool agrees(double found, double expected)
{
    const double TOLERANCE = 1e-10;
    return fabs(found - expected) <= TOLERANCE * (expected == 0 ? 1 : fabs(expected));
}

static inline struct finding finding_of(int64_t index, double found, double expected)
{
    return (struct finding){.wrong = !agrees(found, expected), .index = index, .expected = expected, .received = found};
}

static inline struct finding earlier(struct finding one, struct finding other)
{
    return one.wrong ? one : other;
}

/* In [0, 1), by the golden ratio: those of neighbours differ by 0.38 or 0.62, so that their exchange shows in a sum. */
static inline double weight_of(int index)
{
    double turns = (index + 1.0) * 0.6180339887498949;
    return turns - (double)(int64_t)turns;
}

/* Tells a list from one with another number, or in another order. */
static inline double weighted_sum(const double *list, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++)
        sum += weight_of(i) * list[i];
    return sum;
}

/* What rank 0 has of `rank`, which begins at `list`, against what that rank has itself: the same numbers have the same sum,
 * to the last bit. `index` is where they begin in the send buffer of rank 0. Called by rank 0 and `rank` alone. */
static inline struct finding check_returned(const struct exchange *x, int rank, const double *list, int count,
                                            int64_t index)
{
    enum { SUM = 99 };
    double sum = weighted_sum(list, count), own;
    if (x->rank == rank)
        MPI_Send(&sum, 1, MPI_DOUBLE, 0, SUM, x->comm);
    if (x->rank > 0)
        return (struct finding){.wrong = false};
    MPI_Recv(&own, 1, MPI_DOUBLE, rank, SUM, x->comm, MPI_STATUS_IGNORE);
    return (struct finding){.wrong = !(sum == own), .index = index, .expected = own, .received = sum};
}

#endif
