/* News reaches rank 1 late: loaded in front of an MPI, MPI_Recv of one 64-bit integer, which is how the
 * opening of a start window is announced, returns on rank 1 after 30 ms, for the calls from number
 * PLUMBLINE_FAULT_AFTER to PLUMBLINE_FAULT_BEFORE. No start window is that long. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <stdlib.h>
#include <time.h>

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    static int calls;
    int rank, result = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 1 && type == MPI_INT64_T && count == 1) {
        int call = calls++;
        if (call >= atoi(getenv("PLUMBLINE_FAULT_AFTER")) && call < atoi(getenv("PLUMBLINE_FAULT_BEFORE"))) {
            struct timespec delay = {.tv_nsec = 30000000};
            nanosleep(&delay, NULL);
        }
    }
    return result;
}
