/* LUFact: Linpack's elimination with partial pivoting by columns, which are dealt out in turn, and the solution on rank 0.
 * `bytes` are those of the matrix.
 *
 * The published generator repeats itself after 2^14 numbers, so that of N = 2000 the rows repeat after 1024: that matrix
 * is singular, and the published test lets the NaN pass that comes of it. N = 2000 here is a matrix of our own, of the same
 * sequence drawn with one more bit. */
#include "kernel.h"

enum { FIRST = 1325, FACTOR = 3125, PUBLISHED_MODULUS = 1 << 16, OWN_MODULUS = 1 << 17, OWN_SIZE = 2000, HOME = 0 };

static const struct {
    int size;
    double residual; /* at most */
    double sum;      /* of all elements, exactly */
} known[] = {{500, 6, -88.9228515625}, {1000, 12, -120.81640625}, {2000, 20, -102.6328125}};

static int size_of(const struct exchange *x)
{
    return (int)lround(sqrt(x->count));
}

/* Doubles of a column: it has one more than elements, as it is sent. */
static int length_of(const struct exchange *x)
{
    return size_of(x) + 1;
}

/* Columns of a rank: its number, and every p-th from there on. */
static int columns_of(const struct exchange *x, int rank)
{
    int size = size_of(x);
    return rank < size ? blocks_needed(size - rank, x->processes) : 0;
}

/* The problem in the send buffer. Rank 0 has all columns, the others their own. */
struct problem {
    int size;
    double *pivots;    /* [size] numbers of rows */
    double *column;    /* [length] that is broadcast; at the end a row of the matrix */
    double *right;     /* [size] right-hand side, then the solution */
    double *residuals; /* [size] */
    double *matrix;
};

static struct problem problem_of(const struct exchange *x)
{
    int size = size_of(x);
    double *vectors = x->send;
    return (struct problem){size, vectors, vectors + size, vectors + 2 * size + 1, vectors + 3 * size + 1, vectors + 4 * size + 1};
}

uint64_t lufact_memory(const struct exchange *x)
{
    int columns = x->rank == 0 ? size_of(x) : columns_of(x, x->rank);
    return 4 * (uint64_t)size_of(x) + 1 + (uint64_t)columns * (uint64_t)length_of(x);
}

static double *column_at(const struct exchange *x, int j)
{
    return problem_of(x).matrix + (ptrdiff_t)(x->rank == 0 ? j : j / x->processes) * length_of(x);
}

/* The next element, row by row, between -2 and 2. */
static double draw(int64_t *state, int size)
{
    int64_t modulus = size == OWN_SIZE ? OWN_MODULUS : PUBLISHED_MODULUS;
    *state = FACTOR * *state % modulus;
    return (double)(*state - modulus / 2) / ((double)modulus / 4);
}

/* The right-hand side is that of a solution of all ones. */
static void prepare(const struct exchange *x)
{
    struct problem p = problem_of(x);
    int64_t state = FIRST;
    for (int row = 0; row < p.size; row++) {
        p.right[row] = 0;
        for (int j = 0; j < p.size; j++) {
            double value = draw(&state, p.size);
            p.right[row] += value;
            if (j % x->processes == x->rank)
                column_at(x, j)[row] = value;
        }
    }
    for (int j = x->rank; j < p.size; j += x->processes)
        column_at(x, j)[p.size] = 0;
}

/* Swaps the largest element from row k on into row k, and makes factors of those below it. Returns where it was. */
static int choose_pivot(double *column, int k, int size)
{
    int pivot = k;
    for (int i = k + 1; i < size; i++)
        if (fabs(column[i]) > fabs(column[pivot]))
            pivot = i;
    double value = column[pivot];
    column[pivot] = column[k];
    column[k] = value;
    for (int i = k + 1; i < size; i++)
        column[i] *= -1 / value;
    return pivot;
}

/* Does to another column what was done to column k. */
static void eliminate(double *column, const double *factors, int k, int pivot, int size)
{
    double value = column[pivot];
    column[pivot] = column[k];
    column[k] = value;
    for (int i = k + 1; i < size; i++)
        column[i] += value * factors[i];
}

/* A pivot of zero is none: it makes NaN of everything, and the test fails. */
void lufact_compute(const struct exchange *x)
{
    struct problem p = problem_of(x);
    for (int k = 0; k < p.size; k++) {
        int owner = k % x->processes, pivot = k;
        double *column = x->rank == owner ? column_at(x, k) : p.column;
        if (x->rank == owner)
            pivot = choose_pivot(column, k, p.size);
        MPI_Bcast(column, length_of(x), MPI_DOUBLE, owner, x->comm);
        MPI_Bcast(&pivot, 1, MPI_INT, owner, x->comm);
        p.pivots[k] = pivot;
        int first = k + 1 + (x->rank - (k + 1) % x->processes + x->processes) % x->processes;
        for (int j = first; j < p.size; j += x->processes)
            eliminate(column_at(x, j), column, k, pivot, p.size);
    }
    MPI_Barrier(x->comm);
}

/* All columns to rank 0, each where it belongs. */
static void return_columns(const struct exchange *x)
{
    int length = length_of(x), own = columns_of(x, x->rank);
    if (x->rank > 0)
        MPI_Send(problem_of(x).matrix, own * length, MPI_DOUBLE, 0, HOME, x->comm);
    for (int rank = 1; x->rank == 0 && rank < x->processes; rank++) {
        MPI_Datatype columns;
        MPI_Type_vector(columns_of(x, rank), length, x->processes * length, MPI_DOUBLE, &columns);
        MPI_Type_commit(&columns);
        MPI_Recv(problem_of(x).matrix + (ptrdiff_t)rank * length, 1, columns, rank, HOME, x->comm, MPI_STATUS_IGNORE);
        MPI_Type_free(&columns);
    }
}

/* On rank 0, the right-hand side becomes the solution. */
static void solve(const struct exchange *x)
{
    struct problem p = problem_of(x);
    double *b = p.right;
    for (int k = 0; x->rank == 0 && k < p.size - 1; k++)
        eliminate(b, column_at(x, k), k, (int)p.pivots[k], p.size);
    for (int k = p.size - 1; x->rank == 0 && k >= 0; k--) {
        const double *column = column_at(x, k);
        b[k] /= column[k];
        for (int i = 0; i < k; i++)
            b[i] -= b[k] * column[i];
    }
}

static void return_and_solve(const struct exchange *x)
{
    return_columns(x);
    solve(x);
    MPI_Barrier(x->comm);
}

void lufact(const struct exchange *x)
{
    lufact_compute(x);
    return_and_solve(x);
}

static double largest(const double *list, int count)
{
    double most = 0;
    for (int i = 0; i < count; i++)
        if (isnan(list[i]) || fabs(list[i]) > most) /* so that NaN is the largest of all, and stays it */
            most = fabs(list[i]);
    return most;
}

/* Largest element of |A x - b| over N, the largest element of A, of |x|, and the precision; with A made anew. */
static double normalised_residual(const struct exchange *x)
{
    struct problem p = problem_of(x);
    int64_t state = FIRST;
    double most = 0, precision = fabs(3 * (4.0 / 3 - 1) - 1);
    for (int row = 0; row < p.size; row++) {
        double *elements = p.column, sum = 0;
        for (int j = 0; j < p.size; j++) {
            elements[j] = draw(&state, p.size);
            most = elements[j] > most ? elements[j] : most;
            sum += elements[j];
        }
        p.residuals[row] = -sum;
        for (int j = 0; j < p.size; j++)
            p.residuals[row] += elements[j] * p.right[j];
    }
    return largest(p.residuals, p.size) / (p.size * most * largest(p.right, p.size) * precision);
}

/* Multiples of 2^-15, which no order of summing rounds. */
static double sum_elements(int size)
{
    int64_t state = FIRST;
    double sum = 0;
    for (int i = 0; i < size * size; i++)
        sum += draw(&state, size);
    return sum;
}

/* A small residual is also that of another matrix: its sum tells that it is the one of the definition. */
static struct finding check(const struct exchange *x)
{
    if (x->operation == lufact_compute)
        return_and_solve(x);
    if (x->rank > 0)
        return (struct finding){.wrong = false};
    double residual = normalised_residual(x);
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == size_of(x) && residual <= known[i].residual)
            return finding_of(0, sum_elements(size_of(x)), known[i].sum);
        else if (known[i].size == size_of(x))
            return (struct finding){.wrong = true, .expected = known[i].residual, .received = residual};
    return (struct finding){.wrong = true};
}

const struct kernel lufact_kernel = {prepare, check};
