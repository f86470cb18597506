/* An MPI whose results look right to who looks only at a part of them, or at the same ones again. Loaded in front of the
 * real one. PLUMBLINE_FAULT says how:
 *   idle_barrier   MPI_Barrier on all ranks does nothing
 *   one_sided      MPI_Barrier: rank 0 waits for nobody
 *   deaf           MPI_Barrier: the last rank waits for nobody
 *   half_numbers   MPI_Sendrecv: the lower half of every 8 bytes arrives as zeros
 *   few_bits       MPI_Sendrecv: the lowest 4 bits of every 8 bytes arrive as zeros
 *   one_bit        MPI_Scatter: the sign of the last element that the last rank receives is another one
 *   single         MPI_Scan: results have the precision of a float
 *   single_root    MPI_Reduce: the same
 *   fifth          MPI_Reduce: the fifth call is wrong, at the root
 *   remembered     MPI_Sendrecv: the first message is delivered again and again
 *   stale_half     MPI_Sendrecv: the second half of a message is that of the message before
 *   stale_block    MPI_Allgather: the block of the last rank is that of the call before, on rank 0
 *   last_block     MPI_Alltoall: the last block is not delivered to the last rank
 *   least          MPI_Allreduce: of each element the least bit is lost on the last rank
 *   spoiled        MPI_Gather: changes what it sends, behind the call
 *   behind         MPI_Scatter: writes the 65th byte behind its result
 *   before         MPI_Scatter: writes the byte before its result
 *   around         MPI_Gather: writes a byte behind what it sends
 * Only calls with doubles on the world are touched. */
#include <mpi.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 16 };

static int is(const char *fault)
{
    const char *wanted = getenv("PLUMBLINE_FAULT");
    return wanted != NULL && strcmp(wanted, fault) == 0;
}

static int rank_of(int *last)
{
    int rank, size;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    PMPI_Comm_size(MPI_COMM_WORLD, &size);
    *last = size - 1;
    return rank;
}

static void mask(void *buffer, int count, uint64_t bits)
{
    uint64_t *words = buffer;
    for (int i = 0; i < count; i++)
        words[i] &= bits;
}

static void round_to_float(double *numbers, int count)
{
    for (int i = 0; i < count; i++)
        numbers[i] = (double)(float)numbers[i];
}

int MPI_Barrier(MPI_Comm comm)
{
    int last, rank = rank_of(&last);
    if (comm != MPI_COMM_WORLD)
        return PMPI_Barrier(comm);
    if (is("idle_barrier"))
        return MPI_SUCCESS;
    /* messages in the place of the barrier, from the one that nobody has to wait for */
    if (is("one_sided") || is("deaf")) {
        int from = is("deaf") ? last : 0;
        for (int to = 0; rank == from && to <= last; to++)
            if (to != from)
                PMPI_Send(NULL, 0, MPI_BYTE, to, 7777, comm);
        return rank == from ? MPI_SUCCESS : PMPI_Recv(NULL, 0, MPI_BYTE, from, 7777, comm, MPI_STATUS_IGNORE);
    }
    return PMPI_Barrier(comm);
}

int MPI_Sendrecv(const void *send, int send_count, MPI_Datatype send_type, int to, int send_tag, void *receive,
                 int receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm, MPI_Status *status)
{
    static double first[MOST], before[MOST];
    static int calls;
    int result = PMPI_Sendrecv(send, send_count, send_type, to, send_tag, receive, receive_count, receive_type, from,
                               receive_tag, comm, status);
    if (comm != MPI_COMM_WORLD || receive_type != MPI_DOUBLE || receive_count > MOST)
        return result;
    size_t bytes = (size_t)receive_count * sizeof(double);
    if (is("half_numbers"))
        mask(receive, receive_count, UINT64_C(0xffffffff00000000));
    if (is("few_bits"))
        mask(receive, receive_count, ~UINT64_C(15));
    if (is("remembered") && calls++ == 0)
        memcpy(first, receive, bytes);
    else if (is("remembered"))
        memcpy(receive, first, bytes);
    if (is("stale_half")) {
        double *half = (double *)receive + receive_count / 2;
        size_t rest = bytes - (size_t)(receive_count / 2) * sizeof(double);
        double held[MOST];
        memcpy(held, half, rest);
        if (calls++ > 0)
            memcpy(half, before, rest);
        memcpy(before, held, rest);
    }
    return result;
}

int MPI_Scan(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int result = PMPI_Scan(send, receive, count, type, op, comm);
    if (comm == MPI_COMM_WORLD && is("single"))
        round_to_float(receive, count);
    return result;
}

int MPI_Reduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm)
{
    static int calls;
    int last, result = PMPI_Reduce(send, receive, count, type, op, root, comm);
    if (comm == MPI_COMM_WORLD && ++calls == 5 && is("fifth") && rank_of(&last) == root)
        mask(receive, count, ~UINT64_C(255));
    if (comm == MPI_COMM_WORLD && is("single_root") && rank_of(&last) == root)
        round_to_float(receive, count);
    return result;
}

int MPI_Allreduce(const void *send, void *receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
    int last, result = PMPI_Allreduce(send, receive, count, type, op, comm);
    if (comm == MPI_COMM_WORLD && is("least") && rank_of(&last) == last)
        mask(receive, count, ~UINT64_C(1));
    return result;
}

int MPI_Scatter(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    int last, rank = rank_of(&last);
    int result = PMPI_Scatter(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
    unsigned char *bytes = receive;
    if (comm != MPI_COMM_WORLD || rank != last)
        return result;
    if (is("one_bit"))
        bytes[8 * receive_count - 1] ^= 0x80;
    if (is("behind"))
        bytes[8 * receive_count + 64] ^= 1;
    if (is("before"))
        bytes[-1] ^= 1;
    return result;
}

int MPI_Gather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
               MPI_Datatype receive_type, int root, MPI_Comm comm)
{
    int last, rank = rank_of(&last);
    int result = PMPI_Gather(send, send_count, send_type, receive, receive_count, receive_type, root, comm);
    unsigned char *sent = (unsigned char *)(uintptr_t)send;
    if (comm == MPI_COMM_WORLD && is("spoiled") && rank == last)
        sent[0] ^= 1;
    if (comm == MPI_COMM_WORLD && is("around") && rank == last)
        sent[8 * send_count] ^= 1;
    return result;
}

int MPI_Allgather(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm)
{
    static double before[MOST];
    static int calls;
    int last, rank = rank_of(&last);
    int result = PMPI_Allgather(send, send_count, send_type, receive, receive_count, receive_type, comm);
    if (comm != MPI_COMM_WORLD || !is("stale_block") || rank != 0)
        return result;
    double *block = (double *)receive + (size_t)last * (size_t)receive_count, held[MOST];
    size_t bytes = (size_t)receive_count * sizeof(double);
    memcpy(held, block, bytes);
    if (calls++ > 0)
        memcpy(block, before, bytes);
    memcpy(before, held, bytes);
    return result;
}

int MPI_Alltoall(const void *send, int send_count, MPI_Datatype send_type, void *receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm)
{
    int last, rank = rank_of(&last);
    size_t bytes = 8 * (size_t)receive_count;
    char *block = (char *)receive + (size_t)last * bytes, held[8 * 1024];
    memcpy(held, block, bytes);
    int result = PMPI_Alltoall(send, send_count, send_type, receive, receive_count, receive_type, comm);
    if (comm == MPI_COMM_WORLD && is("last_block") && rank == last)
        memcpy(block, held, bytes);
    return result;
}
