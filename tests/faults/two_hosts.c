/* Makes two hosts of one: every rank is alone on its host, and the clock of rank r is r x 1000 s ahead. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

static int launched_rank(void)
{
    const char *mpich = getenv("PMI_RANK"), *openmpi = getenv("OMPI_COMM_WORLD_RANK");
    return mpich != NULL ? atoi(mpich) : openmpi != NULL ? atoi(openmpi) : 0;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (id == CLOCK_MONOTONIC)
        time->tv_sec += 1000 * launched_rank();
    return result;
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *result)
{
    (void)comm, (void)type, (void)key, (void)info;
    return PMPI_Comm_dup(MPI_COMM_SELF, result);
}
