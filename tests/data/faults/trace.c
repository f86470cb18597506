/* Writes down what rank 0 does, in order, to the file PLUMBLINE_TRACE: `clock` for a reading of
 * CLOCK_MONOTONIC, and `begin NAME`, `end NAME` for the MPI calls below. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static FILE *trace;

static void note(const char *what, const char *name)
{
    if (trace != NULL)
        fprintf(trace, "%s%s\n", what, name);
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    if (id == CLOCK_MONOTONIC)
        note("clock", "");
    return real(id, time);
}

int MPI_Init(int *argc, char ***argv)
{
    int rank, result = PMPI_Init(argc, argv);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        trace = fopen(getenv("PLUMBLINE_TRACE"), "w");
    return result;
}

int MPI_Finalize(void)
{
    if (trace != NULL)
        fclose(trace);
    trace = NULL;
    return PMPI_Finalize();
}

#define TRACED(name, parameters, arguments)         \
    int MPI_##name parameters                       \
    {                                               \
        note("begin ", #name);                      \
        int result = PMPI_##name arguments;         \
        note("end ", #name);                        \
        return result;                              \
    }

TRACED(Bcast, (void *b, int n, MPI_Datatype t, int r, MPI_Comm c), (b, n, t, r, c))
TRACED(Barrier, (MPI_Comm c), (c))
TRACED(Send, (const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c), (b, n, t, d, g, c))
TRACED(Recv, (void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u), (b, n, t, s, g, c, u))
TRACED(Sendrecv,
       (const void *sb, int sn, MPI_Datatype st, int d, int sg, void *rb, int rn, MPI_Datatype rt, int s, int rg,
        MPI_Comm c, MPI_Status *u),
       (sb, sn, st, d, sg, rb, rn, rt, s, rg, c, u))
