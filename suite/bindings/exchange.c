// Exchange between two ranks in C: what the other languages are held against. See README.md.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE = 4096, RANKS = 2, PINGPONG = 0, BCAST, ALLREDUCE, ALLTOALL, BARRIER, ROUTINES };
static const char *const names[] = {"pingpong", "bcast", "allreduce", "alltoall", "barrier"};
static double *out, *in;
static int rank;

static double value(int from, int batch, int i) { return 1 + (31 * from + 7 * batch + i) % 251; }

static void fill(int routine, int batch, int count)
{
    for (int i = 0; i < count; i++) {
        out[i] = value(rank, batch, i);
        in[i] = routine == BCAST && rank == 0 ? out[i] : 0;
    }
}

static double count_wrong(int routine, int batch, int count)
{
    double wrong = 0;
    for (int i = 0; i < count; i++) {
        double first = value(0, batch, i), second = value(1, batch, i);
        double expected = routine == ALLREDUCE ? first + second : routine == BCAST || rank ? first : second;
        if (routine == ALLTOALL) expected = value(i / (count / RANKS), batch, rank * (count / RANKS) + i % (count / RANKS));
        wrong += !(in[i] == expected);
    }
    return wrong;
}

static void call(int routine, int count)
{
    if (routine == BCAST) {
        MPI_Bcast(in, count, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    } else if (routine == ALLREDUCE) {
        MPI_Allreduce(out, in, count, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    } else if (routine == ALLTOALL) {
        MPI_Alltoall(out, count / RANKS, MPI_DOUBLE, in, count / RANKS, MPI_DOUBLE, MPI_COMM_WORLD);
    } else if (routine == BARRIER) {
        MPI_Barrier(MPI_COMM_WORLD);
    } else if (rank == 0) {
        MPI_Send(out, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD);
        MPI_Recv(in, count, MPI_DOUBLE, 1, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    } else {
        MPI_Recv(in, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
        MPI_Send(out, count, MPI_DOUBLE, 0, 0, MPI_COMM_WORLD);
    }
}

static void measure(int routine, int bytes, int calls, int batches)
{
    int count = bytes / (int)sizeof(double) * (routine == ALLTOALL ? RANKS : 1);
    double wrong = 0, *seconds = calloc(batches, sizeof *seconds);
    for (int batch = 0; batch < 2 * batches; batch++) {
        fill(routine, batch, count);
        MPI_Barrier(MPI_COMM_WORLD);
        double begin = MPI_Wtime();
        for (int n = 0; n < calls; n++) call(routine, count);
        double mine = (MPI_Wtime() - begin) / calls / (routine == PINGPONG ? 2 : 1);
        MPI_Allreduce(&mine, &seconds[batch % batches], 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
        wrong += count_wrong(routine, batch, count);
    }
    double all = 0;
    MPI_Allreduce(&wrong, &all, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    if (rank == 0) {
        printf("%s %d %.0f", names[routine], bytes, all);
        for (int batch = 0; batch < batches; batch++) printf(" %.6e", seconds[batch]);
        printf("\n");
    }
    free(seconds);
}

int main(int argc, char **argv)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int size, level, length;
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Query_thread(&level);
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\n")] = 0;
    if (rank == 0) printf("world %d %d %s\n", size, level == MPI_THREAD_SINGLE ? 0 : 3, library);
    if (size == RANKS) {
        int batches = atoi(argv[1]), largest = RANKS * atoi(argv[argc - 2]);
        if (posix_memalign((void **)&out, PAGE, largest) || posix_memalign((void **)&in, PAGE, largest))
            MPI_Abort(MPI_COMM_WORLD, 1);
        for (int routine = 0; routine < BARRIER; routine++)
            for (int n = 2; n < argc; n += 2) measure(routine, atoi(argv[n]), atoi(argv[n + 1]), batches);
        measure(BARRIER, 0, atoi(argv[3]), batches);
        if (rank == 0) printf("end\n");
    }
    return MPI_Finalize();
}
