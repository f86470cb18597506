/* An MPI that spoils what the application kernels send: loaded in front of the real one. PLUMBLINE_FAULT says which call on
 * MPI_COMM_WORLD, and PLUMBLINE_FAULT_CALL which of its calls on the rank, counted from 0 (all if it is not set):
 *   nan        MPI_Bcast of doubles gives rank 1 a NaN
 *   sum        MPI_Allreduce gives rank 1 an element that is too large by 1
 *   halo       MPI_Sendrecv gives rank 1 two elements that are too large by 1
 *   recv       MPI_Recv gives rank 0 another byte
 *   middle     MPI_Recv of doubles gives rank 0 an element that is too large by 1, in the middle
 *   turned     MPI_Recv of doubles gives rank 0 a list turned around
 *   swapped    MPI_Allreduce gives rank 1 two elements in each other's place: those of two rows that have
 *              five entries each in the matrix of size A */
#include <math.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

enum { EARLY = 4, LATE = 49995 };

static int is_due(const char *fault, int on, MPI_Comm comm, int *calls)
{
    const char *wanted = getenv("PLUMBLINE_FAULT"), *call = getenv("PLUMBLINE_FAULT_CALL");
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (comm != MPI_COMM_WORLD || rank != on || wanted == NULL || strcmp(wanted, fault) != 0)
        return 0;
    int number = (*calls)++;
    return call == NULL || number == atoi(call);
}

static void swap(double *one, double *other)
{
    double kept = *one;
    *one = *other;
    *other = kept;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    static int calls;
    int result = PMPI_Bcast(buffer, count, type, root, comm);
    if (type == MPI_DOUBLE && is_due("nan", 1, comm, &calls))
        ((double *)buffer)[count - 2] = NAN;
    return result;
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    static int calls, swaps;
    int result = PMPI_Allreduce(send, receive, count, type, op, comm);
    if (type == MPI_DOUBLE && is_due("sum", 1, comm, &calls))
        ((double *)receive)[0] += 1;
    if (type == MPI_DOUBLE && is_due("swapped", 1, comm, &swaps))
        swap((double *)receive + EARLY, (double *)receive + LATE);
    return result;
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag, void *receive, int count,
                 MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status)
{
    static int calls;
    int result =
        PMPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, count, type, from, tag, comm, status);
    if (type == MPI_DOUBLE && from != MPI_PROC_NULL && is_due("halo", 1, comm, &calls))
        ((double *)receive)[count / 2] += 1, ((double *)receive)[count / 2 + 1] += 1; /* one of each colour */
    return result;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm, MPI_Status *status)
{
    static int calls, doubles, lists;
    int result = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    if (type == MPI_DOUBLE && is_due("middle", 0, comm, &doubles))
        ((double *)buffer)[count / 2] += 1;
    if (type == MPI_DOUBLE && is_due("turned", 0, comm, &lists))
        for (int i = 0; i < count / 2; i++)
            swap((double *)buffer + i, (double *)buffer + count - 1 - i);
    if (is_due("recv", 0, comm, &calls))
        ((unsigned char *)buffer)[7] ^= 0x40;
    return result;
}
