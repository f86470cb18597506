/* An MPI that delivers wrong data: loaded in front of the real one. PLUMBLINE_FAULT says how:
 *   bcast      MPI_Bcast changes the last element that rank 1 receives
 *   recv       MPI_Recv of doubles changes the last element that rank 1 receives
 *   overrun    MPI_Allreduce writes one element behind the result of rank 1
 *   skip       MPI_Allgather does nothing, on every rank
 *   local      MPI_Reduce_local does nothing, on every rank
 * from call number PLUMBLINE_FAULT_AFTER on, counted from 0 on each rank, until call number
 * PLUMBLINE_FAULT_BEFORE if that is set. */
#include <limits.h>
#include <mpi.h>
#include <stdlib.h>
#include <string.h>

static int is_due(const char *fault, int *calls)
{
    const char *wanted = getenv("PLUMBLINE_FAULT");
    const char *after = getenv("PLUMBLINE_FAULT_AFTER");
    const char *before = getenv("PLUMBLINE_FAULT_BEFORE");
    if (wanted == NULL || strcmp(wanted, fault) != 0)
        return 0;
    int call = (*calls)++;
    return call >= (after != NULL ? atoi(after) : 0) && call < (before != NULL ? atoi(before) : INT_MAX);
}

static int is_rank_1(void)
{
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    return rank == 1;
}

/* The least bit: the smallest difference that an element can have. */
static void corrupt(void *buffer, int count)
{
    if (count > 0)
        ((unsigned char *)buffer)[8 * (count - 1)] ^= 1;
}

int MPI_Bcast(void *buffer, int count, MPI_Datatype type, int root, MPI_Comm comm)
{
    static int calls;
    int result = PMPI_Bcast(buffer, count, type, root, comm);
    if (is_due("bcast", &calls) && is_rank_1())
        corrupt(buffer, count);
    return result;
}

int MPI_Recv(void *buffer, int count, MPI_Datatype type, int source, int tag, MPI_Comm comm,
             MPI_Status *status)
{
    static int calls;
    int result = PMPI_Recv(buffer, count, type, source, tag, comm, status);
    if (type == MPI_DOUBLE && is_due("recv", &calls) && is_rank_1())
        corrupt(buffer, count);
    return result;
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    static int calls;
    int result = PMPI_Allreduce(send, receive, count, type, op, comm);
    if (type == MPI_DOUBLE && is_due("overrun", &calls) && is_rank_1())
        corrupt(receive, count + 1);
    return result;
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm)
{
    static int calls;
    if (is_due("skip", &calls))
        return MPI_SUCCESS;
    return PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
}

int MPI_Reduce_local(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op)
{
    static int calls;
    if (is_due("local", &calls))
        return MPI_SUCCESS;
    return PMPI_Reduce_local(send, receive, count, type, op);
}
