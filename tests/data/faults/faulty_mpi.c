/* Plants one fault into a running MPI program, by the profiling interface. Loaded with LD_PRELOAD.
 *
 * PLANTED_FAULT  delay    every MPI_Bcast of at least PLANTED_BYTES takes PLANTED_SECONDS longer;
 *                         if PLANTED_ONCE names a file, only in the launch that finds and removes it
 *                hang     the third MPI_Bcast never returns on rank 1
 *                crash    the third MPI_Bcast kills rank 1
 *                early    the program dies before MPI_Init
 *                late     the program dies at the end of MPI_Finalize, after all results are written
 *                exit     the program returns 9 after all results are written
 *                corrupt  every MPI_Bcast from the third on delivers one wrong byte to rank 1
 */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BEFORE = 2, EXIT_CODE = 9 };

static int planted(const char *fault)
{
    const char *name = getenv("PLANTED_FAULT");
    return name != NULL && strcmp(name, fault) == 0;
}

static double number(const char *variable)
{
    const char *text = getenv(variable);
    return text == NULL ? 0 : strtod(text, NULL);
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static void delay(double seconds)
{
    for (double end = now() + seconds; now() < end;)
        ;
}

static int due = 1;

int MPI_Init(int *argc, char ***argv)
{
    const char *once = getenv("PLANTED_ONCE");
    due = once == NULL || access(once, F_OK) == 0;
    if (planted("early"))
        raise(SIGSEGV);
    return PMPI_Init(argc, argv);
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    static int calls;
    int size, rank;
    PMPI_Type_size(type, &size);
    PMPI_Comm_rank(comm, &rank);
    int chosen = ++calls > BEFORE && rank == 1;
    if (chosen && planted("hang"))
        for (;;)
            pause();
    if (chosen && planted("crash"))
        raise(SIGSEGV);
    int result = PMPI_Bcast(buffer, count, type, root, comm);
    if (chosen && planted("corrupt") && count > 0)
        ((unsigned char *)buffer)[0] ^= 1;
    if (planted("delay") && due && (double)count * size >= number("PLANTED_BYTES"))
        delay(number("PLANTED_SECONDS"));
    return result;
}

int MPI_Finalize(void)
{
    int result = PMPI_Finalize();
    if (due && getenv("PLANTED_ONCE") != NULL)
        unlink(getenv("PLANTED_ONCE"));
    if (planted("late"))
        raise(SIGSEGV);
    if (planted("exit"))
        _exit(EXIT_CODE);
    return result;
}
