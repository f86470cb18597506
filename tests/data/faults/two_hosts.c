/* Makes two hosts of one: every rank is alone on its host, whose name ends in its number, and the clock of rank r is r x 1000 s ahead when the rank
 * reads it for the first time. After that it runs faster by r x PLUMBLINE_DRIFT. The witness calls the PMPI names. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static int launched_rank(void)
{
    const char *mpich = getenv("PMI_RANK"), *openmpi = getenv("OMPI_COMM_WORLD_RANK");
    return mpich != NULL ? atoi(mpich) : openmpi != NULL ? atoi(openmpi) : 0;
}

static void move_on(struct timespec *time)
{
    static struct timespec first;
    static double drift;
    if (first.tv_sec == 0) {
        const char *faster = getenv("PLUMBLINE_DRIFT");
        first = *time;
        drift = faster != NULL ? atof(faster) * launched_rank() : 0;
    }
    long long passed = (time->tv_sec - first.tv_sec) * 1000000000LL + time->tv_nsec - first.tv_nsec;
    long long shown = time->tv_nsec + (long long)(drift * (double)passed);
    time->tv_sec += 1000 * launched_rank() + shown / 1000000000;
    time->tv_nsec = shown % 1000000000;
}

int clock_gettime(clockid_t id, struct timespec *time)
{
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(id, time);
    if (id == CLOCK_MONOTONIC)
        move_on(time);
    return result;
}

int PMPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *result)
{
    (void)comm, (void)type, (void)key, (void)info;
    return PMPI_Comm_dup(MPI_COMM_SELF, result);
}

int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *result)
{
    return PMPI_Comm_split_type(comm, type, key, info, result);
}

int PMPI_Get_processor_name(char *name, int *length)
{
    static int (*real)(char *, int *);
    if (real == NULL)
        *(void **)&real = dlsym(RTLD_NEXT, "PMPI_Get_processor_name");
    int result = real(name, length);
    *length += snprintf(name + *length, 12, "-%d", launched_rank());
    return result;
}

int MPI_Get_processor_name(char *name, int *length)
{
    return PMPI_Get_processor_name(name, length);
}
