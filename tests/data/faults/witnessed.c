/* Stands in for a benchmark that the witness watches. On standard output: the thread level that it got and, if the
 * library `count_calls` is loaded, what MPI_Init and MPI_Finalize did.
 *
 *   witnessed CODE         MPI_Init_thread, a message around the ring, MPI_Finalize; returns CODE
 *   witnessed CODE plain   the same with MPI_Init
 *   witnessed CODE crash   the last rank dies of SIGSEGV before MPI_Finalize
 *   witnessed CODE leave   the last rank leaves with exit code 0 and without MPI_Finalize
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int counted(const char *what)
{
    int (*count)(const char *);
    *(void **)&count = dlsym(RTLD_DEFAULT, "plumbline_counted");
    return count != NULL ? count(what) : -1;
}

static int is(int argc, char **argv, const char *mode)
{
    return argc > 2 && strcmp(argv[2], mode) == 0;
}

static int ring(void)
{
    int rank, size, token = -1;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Sendrecv(&rank, 1, MPI_INT, (rank + 1) % size, 0, &token, 1, MPI_INT, (rank + size - 1) % size, 0,
                 MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    return token;
}

int main(int argc, char **argv)
{
    int level = -1, rank, size, code = argc > 1 ? atoi(argv[1]) : 0;
    int before = counted("calls");
    if (is(argc, argv, "plain"))
        MPI_Init(&argc, &argv);
    else
        MPI_Init_thread(&argc, &argv, MPI_THREAD_SERIALIZED, &level);
    int in_init = counted("calls") - before;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    printf("rank %d of %d: thread level %d, token %d, %d calls in MPI_Init\n", rank, size, level, ring(), in_init);
    fflush(stdout);
    if (rank == size - 1 && is(argc, argv, "crash"))
        raise(SIGSEGV);
    if (rank == size - 1 && is(argc, argv, "leave"))
        _exit(0);
    before = counted("calls");
    MPI_Finalize();
    if (before >= 0)
        printf("rank %d: %d calls in MPI_Finalize, %d communicators made, %d freed\n", rank,
               counted("calls") - before, counted("made"), counted("freed"));
    return code;
}
