/* Series: Fourier coefficients of (x + 1)^x on [0, 2], the same number of them on each rank. `bytes` are those of all
 * pairs of coefficients.
 *
 * The known results are those of a trapezoidal rule with 998 points between the ends of 1000 intervals. The rule has 999:
 * the published program leaves one out, and so must this one (a0 would be 2.88192). */
#include "kernel.h"

enum { INTERVALS = 1000, INNER_POINTS = 998, KNOWN = 4, TAG = 0 };

static const double LENGTH = 2, PI = 3.14159265358979323846;
static const double known_cosines[KNOWN] = {2.8729524964837996, 1.1161046676147888, 0.34429060398168704, 0.15238898702519288};
static const double known_sines[KNOWN] = {0, -1.8819691893398025, -1.1645642623320958, -0.8143461113044298};

enum wave { CONSTANT, COSINE, SINE };

static int pairs_of(const struct exchange *x)
{
    return x->count / 2;
}

static struct part own_part(const struct exchange *x, int rank)
{
    return part_of(pairs_of(x), blocks_needed(pairs_of(x), x->processes), rank);
}

/* Rank 0 has room for all: first the cosines, then the sines. */
static int room_of(const struct exchange *x)
{
    return x->rank == 0 ? pairs_of(x) : own_part(x, x->rank).count;
}

uint64_t series_memory(const struct exchange *x)
{
    return 2 * (uint64_t)room_of(x);
}

static double function_at(double x, int n, enum wave wave)
{
    double power = pow(x + 1, x), angle = PI * n * x;
    return wave == CONSTANT ? power : power * (wave == COSINE ? cos(angle) : sin(angle));
}

static double integral(int n, enum wave wave)
{
    double step = LENGTH / INTERVALS, x = 0, sum = function_at(0, n, wave) / 2;
    for (int i = 0; i < INNER_POINTS; i++) {
        x += step;
        sum += function_at(x, n, wave);
    }
    return (sum + function_at(LENGTH, n, wave) / 2) * step;
}

static double cosine_at(int n)
{
    return n == 0 ? integral(0, CONSTANT) / 2 : integral(n, COSINE);
}

static double sine_at(int n)
{
    return n == 0 ? 0 : integral(n, SINE);
}

static void prepare(const struct exchange *x)
{
    for (int i = 0; i < 2 * room_of(x); i++)
        x->send[i] = NAN;
}

void series_compute(const struct exchange *x)
{
    struct part own = own_part(x, x->rank);
    double *cosines = x->send, *sines = x->send + room_of(x);
    for (int i = 0; i < own.count; i++) {
        cosines[i] = cosine_at(own.first + i);
        sines[i] = sine_at(own.first + i);
    }
    MPI_Barrier(x->comm);
}

/* Two messages from each rank. */
static void return_results(const struct exchange *x)
{
    for (int half = 0; half < 2; half++) {
        double *list = x->send + half * room_of(x);
        if (x->rank > 0)
            MPI_Send(list, own_part(x, x->rank).count, MPI_DOUBLE, 0, TAG, x->comm);
        for (int rank = 1; x->rank == 0 && rank < x->processes; rank++) {
            struct part part = own_part(x, rank);
            MPI_Recv(list + part.first, part.count, MPI_DOUBLE, rank, TAG, x->comm, MPI_STATUS_IGNORE);
        }
    }
    MPI_Barrier(x->comm);
}

void series(const struct exchange *x)
{
    series_compute(x);
    return_results(x);
}

/* One pair against what it must be; the index is that in the send buffer. */
static struct finding check_pair(const struct exchange *x, int n, double cosine, double sine)
{
    struct finding found = finding_of(n, x->send[n], cosine);
    return found.wrong ? found : finding_of(pairs_of(x) + n, x->send[pairs_of(x) + n], sine);
}

/* What rank 0 has of each other rank, against what that rank has itself. Collective. */
static struct finding check_return(const struct exchange *x)
{
    struct finding found = {.wrong = false};
    for (int half = 0; half < 2; half++)
        for (int rank = 1; rank < x->processes; rank++) {
            struct part part = own_part(x, rank);
            const double *list = x->send + half * room_of(x) + (x->rank == 0 ? part.first : 0);
            if (x->rank == 0 || x->rank == rank)
                found = earlier(found, check_returned(x, rank, list, part.count, half * pairs_of(x) + part.first));
        }
    return found;
}

/* What came home is what the ranks have; the published pairs; the first and the last of each rank, computed again; and
 * that every other one has come. */
static struct finding check(const struct exchange *x)
{
    if (x->operation == series_compute)
        return_results(x);
    struct finding found = check_return(x);
    if (x->rank > 0)
        return found;
    for (int n = 0; n < KNOWN && !found.wrong; n++)
        found = check_pair(x, n, known_cosines[n], known_sines[n]);
    for (int rank = 0; rank < x->processes && !found.wrong; rank++) {
        struct part part = own_part(x, rank);
        int last = part.first + part.count - 1;
        if (part.count > 0)
            found = check_pair(x, part.first, cosine_at(part.first), sine_at(part.first));
        if (part.count > 0 && !found.wrong)
            found = check_pair(x, last, cosine_at(last), sine_at(last));
    }
    for (int i = 0; i < 2 * pairs_of(x) && !found.wrong; i++)
        if (isnan(x->send[i]))
            found = finding_of(i, NAN, 0);
    return found;
}

const struct kernel series_kernel = {prepare, check};
