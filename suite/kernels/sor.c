/* SOR: 100 iterations of successive over-relaxation in red and black on an N x N matrix, rows dealt out in even blocks.
 * `bytes` are those of the matrix. */
#include "kernel.h"

#include "generator.h"

enum { HALF_SWEEPS = 200, GENERATOR_SEED = 10101010, UPWARDS = 1, DOWNWARDS, HOME };

static const double OMEGA = 1.25;
static const struct {
    int size;
    double sum; /* over the interior */
} known[] = {{1000, 0.498574406322512}, {1500, 1.1234778980135105}, {2000, 1.9954895063582696}};

static int size_of(const struct exchange *x)
{
    return (int)lround(sqrt(x->count));
}

/* An even number of rows, so that every rank begins with the same colour. */
static struct part own_part(const struct exchange *x, int rank)
{
    return part_of(size_of(x), 2 * blocks_needed(blocks_needed(size_of(x), 2), x->processes), rank);
}

/* Rank 0 has the whole matrix, of which its part is the beginning; the others have their rows and one more on each side. */
uint64_t sor_memory(const struct exchange *x)
{
    int rows = x->rank == 0 ? size_of(x) : own_part(x, x->rank).count + 2;
    return (uint64_t)rows * (uint64_t)size_of(x);
}

/* Where row `row` of the whole matrix lies. */
static double *row_at(const struct exchange *x, int row)
{
    return x->send + (ptrdiff_t)(x->rank == 0 ? row : row - own_part(x, x->rank).first + 1) * size_of(x);
}

/* A row to each neighbour, and one from it. A rank without rows has no neighbours. */
static void exchange_rows(const struct exchange *x, struct part own)
{
    int size = size_of(x), end = own.first + own.count;
    int above = own.count > 0 && own.first > 0 ? x->rank - 1 : MPI_PROC_NULL;
    int below = own.count > 0 && end < size ? x->rank + 1 : MPI_PROC_NULL;
    double *first = row_at(x, own.first), *behind = row_at(x, end);
    MPI_Sendrecv(first, size, MPI_DOUBLE, above, UPWARDS, behind, size, MPI_DOUBLE, below, UPWARDS, x->comm,
                 MPI_STATUS_IGNORE);
    MPI_Sendrecv(behind - size, size, MPI_DOUBLE, below, DOWNWARDS, first - size, size, MPI_DOUBLE, above, DOWNWARDS,
                 x->comm, MPI_STATUS_IGNORE);
}

/* Each rank draws the whole matrix and keeps its rows; those around them are its neighbours'. */
static void prepare(const struct exchange *x)
{
    struct generator generator = generator_open(GENERATOR_SEED);
    struct part own = own_part(x, x->rank);
    int size = size_of(x), rows = own.first + own.count;
    double *next = row_at(x, own.first);
    for (uint64_t i = 0; i < sor_memory(x); i++)
        x->send[i] = NAN;
    for (int i = 0; i < rows * size; i++) {
        double value = 1e-6 * generator_double(&generator);
        if (i >= own.first * size)
            *next++ = value;
    }
    exchange_rows(x, own);
}


/* Updates the interior points of a row whose column has that parity. */
static void relax(double *row, int size, int parity)
{
    const double *above = row - size, *below = row + size;
    for (int j = parity == 0 ? 2 : 1; j < size - 1; j += 2)
        row[j] = OMEGA / 4 * (above[j] + below[j] + row[j - 1] + row[j + 1]) + (1 - OMEGA) * row[j];
}

void sor_compute(const struct exchange *x)
{
    struct part own = own_part(x, x->rank);
    int size = size_of(x);
    for (int half = 0; half < HALF_SWEEPS; half++) {
        for (int row = own.first; row < own.first + own.count; row++)
            if (row > 0 && row < size - 1)
                relax(row_at(x, row), size, (row + half) % 2);
        exchange_rows(x, own);
    }
    MPI_Barrier(x->comm);
}

static void return_rows(const struct exchange *x)
{
    struct part own = own_part(x, x->rank);
    if (x->rank > 0)
        MPI_Send(row_at(x, own.first), own.count * size_of(x), MPI_DOUBLE, 0, HOME, x->comm);
    for (int rank = 1; x->rank == 0 && rank < x->processes; rank++) {
        struct part part = own_part(x, rank);
        MPI_Recv(row_at(x, part.first), part.count * size_of(x), MPI_DOUBLE, rank, HOME, x->comm, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(x->comm);
}

void sor(const struct exchange *x)
{
    sor_compute(x);
    return_rows(x);
}

/* Rows in another order have the same sum. Collective. */
static struct finding check_return(const struct exchange *x)
{
    struct finding found = {.wrong = false};
    for (int rank = 1; rank < x->processes; rank++) {
        struct part part = own_part(x, rank);
        if (x->rank == 0 || x->rank == rank)
            found = earlier(found, check_returned(x, rank, row_at(x, part.first), part.count * size_of(x),
                                                  part.first * size_of(x)));
    }
    return found;
}

static struct finding check(const struct exchange *x)
{
    int size = size_of(x);
    if (x->operation == sor_compute)
        return_rows(x);
    struct finding found = check_return(x);
    if (x->rank > 0 || found.wrong)
        return found;
    double sum = 0;
    for (int row = 1; row < size - 1; row++)
        for (int column = 1; column < size - 1; column++)
            sum += row_at(x, row)[column];
    found.wrong = true; /* of a size that nobody knows the result of */
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == size)
            found = finding_of(0, sum, known[i].sum);
    return found;
}

const struct kernel sor_kernel = {prepare, check};
