/* A machine or an MPI with one slow part, to be preloaded: PLUMBLINE_SLOW=memory copies large blocks many times
 * over, PLUMBLINE_SLOW=mpi dawdles in MPI_Bcast. Without the variable nothing is slower. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LARGE = 500000, TIMES = 20, DAWDLE = 2000000 };

static int slow(const char *part)
{
    const char *asked = getenv("PLUMBLINE_SLOW");
    return asked != NULL && strcmp(asked, part) == 0;
}

void *memcpy(void *restrict to, const void *restrict from, size_t bytes)
{
    static void *(*move)(void *, const void *, size_t);
    if (move == NULL)
        *(void **)&move = dlsym(RTLD_NEXT, "memmove");
    int times = bytes >= LARGE && slow("memory") ? TIMES : 1;
    for (int i = 0; i < times; i++)
        move(to, from, bytes);
    return to;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    struct timespec begin, now;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    do
        clock_gettime(CLOCK_MONOTONIC, &now);
    while (slow("mpi") && (now.tv_sec - begin.tv_sec) * 1000000000 + now.tv_nsec - begin.tv_nsec < DAWDLE);
    return PMPI_Bcast(buffer, count, type, root, comm);
}
