/* News reaches rank 1 late: loaded in front of an MPI, MPI_Recv of one 64-bit integer, which is how the
 * opening of a start window is announced, returns on rank 1 after 30 ms of its clock, for every
 * PLUMBLINE_FAULT_EVERY-th of the calls from number PLUMBLINE_FAULT_AFTER to PLUMBLINE_FAULT_BEFORE. No start
 * window is that long. Nobody waits: the clock is ahead until the next such call. All clocks run ten
 * times too slowly, so that a rank that has to wait for a core misses no window for that. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

enum { SLOWER = 10, LATE = 30000000 };

static long long ahead; /* ns */

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (id == CLOCK_MONOTONIC) {
        long long shown = (time->tv_sec * 1000000000LL + time->tv_nsec) / SLOWER + ahead;
        *time = (struct timespec){.tv_sec = shown / 1000000000, .tv_nsec = shown % 1000000000};
    }
    return result;
}

static int number(const char *variable)
{
    const char *text = getenv(variable);
    return text != NULL ? atoi(text) : 1;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    static int calls;
    int rank, result = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 && type == MPI_INT64_T && count == 1) {
        int call = calls++, after = number("PLUMBLINE_FAULT_AFTER");
        int planted = call >= after && call < number("PLUMBLINE_FAULT_BEFORE") &&
                      (call - after) % number("PLUMBLINE_FAULT_EVERY") == 0;
        ahead = planted ? LATE : 0;
    }
    return result;
}
