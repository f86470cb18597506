/* Sparse: 200 products of a sparse N x N matrix of 5 N entries with a vector, entries dealt out in blocks, and after each
 * a sum of the whole result over all ranks. `bytes` are those of that vector. Nothing is returned: all ranks have it. */
#include "kernel.h"

#include <stdlib.h>

#include "generator.h"

enum { PRODUCTS = 200, PER_ROW = 5, GENERATOR_SEED = 10101010 };

static const struct {
    int size;
    double sum;
} known[] = {{50000, 75.02484945753453}, {100000, 150.0130719633895}, {500000, 749.5245870753752}};

struct entry {
    int row, column;
    double value;
};

/* The problem in the send buffer. */
struct problem {
    int size;
    struct part own;
    double *vector, *partial, *sum; /* [size] */
    struct entry *entries;          /* [own.count] */
};

static struct problem problem_of(const struct exchange *x)
{
    int size = x->count, total = PER_ROW * size;
    return (struct problem){
        .size = size,
        .own = part_of(total, blocks_needed(total, x->processes), x->rank),
        .vector = x->send,
        .partial = x->send + size,
        .sum = x->send + 2 * (ptrdiff_t)size,
        .entries = (struct entry *)(x->send + 3 * (ptrdiff_t)size),
    };
}

uint64_t sparse_memory(const struct exchange *x)
{
    uint64_t doubles = sizeof(struct entry) / sizeof(double);
    return 3 * (uint64_t)x->count + doubles * (uint64_t)problem_of(x).own.count;
}

static struct entry draw_entry(struct generator *generator, int size)
{
    int row = abs(generator_int(generator)) % size;
    int column = abs(generator_int(generator)) % size;
    return (struct entry){row, column, generator_double(generator)};
}

/* Each rank draws everything and keeps its share of the entries. */
static void prepare(const struct exchange *x)
{
    struct problem p = problem_of(x);
    struct generator generator = generator_open(GENERATOR_SEED);
    for (int i = 0; i < p.size; i++) {
        p.vector[i] = 1e-6 * generator_double(&generator);
        p.partial[i] = 0;
        p.sum[i] = NAN;
    }
    for (int i = 0; i < p.own.first + p.own.count; i++) {
        struct entry entry = draw_entry(&generator, p.size);
        if (i >= p.own.first)
            p.entries[i - p.own.first] = entry;
    }
}

void sparse(const struct exchange *x)
{
    struct problem p = problem_of(x);
    for (int product = 0; product < PRODUCTS; product++) {
        for (int i = 0; i < p.own.count; i++)
            p.partial[p.entries[i].row] += p.vector[p.entries[i].column] * p.entries[i].value;
        MPI_Allreduce(p.partial, p.sum, p.size, MPI_DOUBLE, MPI_SUM, x->comm);
    }
    MPI_Barrier(x->comm);
}

/* On every rank: the sum over all entries, also those of other ranks, of the result in their rows; and a sum of the result
 * that tells in which rows it lies, against the same of what all entries give. */
static struct finding check(const struct exchange *x)
{
    struct problem p = problem_of(x);
    struct generator generator = generator_open(GENERATOR_SEED);
    struct finding found = {.wrong = true}; /* of a size that nobody knows the result of */
    double sum = 0, placed = 0;
    for (int i = 0; i < p.size; i++)
        generator_double(&generator);
    for (int i = 0; i < PER_ROW * p.size; i++) {
        struct entry entry = draw_entry(&generator, p.size);
        sum += p.sum[entry.row];
        placed += PRODUCTS * weight_of(entry.row) * p.vector[entry.column] * entry.value;
    }
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].size == p.size)
            found = finding_of(0, sum, known[i].sum);
    return earlier(found, finding_of(0, weighted_sum(p.sum, p.size), placed));
}

const struct kernel sparse_kernel = {prepare, check};
