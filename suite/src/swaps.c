#include "swaps.h"

#include <limits.h>

enum { TAG = 6, PING, PONG, MESSAGES = 4 /* that may be on their way when the next one is sent */ };

static bool idle(const struct exchange *x)
{
    return x->partner < 0;
}

void swap_sendrecv(const struct exchange *x)
{
    if (idle(x))
        return;
    MPI_Sendrecv(x->send, x->count, x->type, x->target, TAG, x->receive, x->count, x->type, x->partner, TAG, x->comm,
                 MPI_STATUS_IGNORE);
}

void swap_nonblocking(const struct exchange *x)
{
    MPI_Request requests[2];
    if (idle(x))
        return;
    MPI_Irecv(x->receive, x->count, x->type, x->partner, TAG, x->comm, &requests[0]);
    MPI_Isend(x->send, x->count, x->type, x->target, TAG, x->comm, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
}

/* Whether this rank sends before it receives: the lower of two, and every second one of a ring. */
static bool sends_first(const struct exchange *x)
{
    return x->target == x->partner ? x->rank < x->partner : x->rank % 2 == 0;
}

void swap_ordered(const struct exchange *x)
{
    if (idle(x))
        return;
    if (sends_first(x))
        MPI_Send(x->send, x->count, x->type, x->target, TAG, x->comm);
    MPI_Recv(x->receive, x->count, x->type, x->partner, TAG, x->comm, MPI_STATUS_IGNORE);
    if (!sends_first(x))
        MPI_Send(x->send, x->count, x->type, x->target, TAG, x->comm);
}

void swap_synchronous(const struct exchange *x)
{
    MPI_Request request;
    if (idle(x))
        return;
    MPI_Irecv(x->receive, x->count, x->type, x->partner, TAG, x->comm, &request);
    MPI_Ssend(x->send, x->count, x->type, x->target, TAG, x->comm);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
}

void swap_persistent(const struct exchange *x)
{
    if (idle(x))
        return;
    MPI_Startall(2, x->requests);
    MPI_Waitall(2, x->requests, MPI_STATUSES_IGNORE);
}

typedef int sending(const void *, int, MPI_Datatype, int, int, MPI_Comm);

static void play(const struct exchange *x, sending *send)
{
    if (x->rank < x->partner) {
        send(x->send, x->count, x->type, x->partner, PING, x->comm);
        MPI_Recv(x->receive, x->count, x->type, x->partner, PONG, x->comm, MPI_STATUS_IGNORE);
    } else if (!idle(x)) {
        MPI_Recv(x->receive, x->count, x->type, x->partner, PING, x->comm, MPI_STATUS_IGNORE);
        send(x->send, x->count, x->type, x->partner, PONG, x->comm);
    }
}

static int send_synchronous(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return MPI_Ssend(data, count, type, to, tag, comm);
}

static int send_buffered(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    return MPI_Bsend(data, count, type, to, tag, comm);
}

void pingpong_synchronous(const struct exchange *x)
{
    play(x, send_synchronous);
}

void pingpong_buffered(const struct exchange *x)
{
    play(x, send_buffered);
}

static bool is_buffered(const struct routine *routine)
{
    return routine->operation == pingpong_buffered;
}

size_t swap_room(const struct routine *routine, uint64_t bytes)
{
    size_t room = MESSAGES * ((size_t)bytes + MPI_BSEND_OVERHEAD);
    return is_buffered(routine) ? room < INT_MAX ? room : INT_MAX : 0;
}

void swap_open(const struct routine *routine, const struct exchange *x, const struct buffers *buffers)
{
    if (routine->operation == swap_persistent && !idle(x)) {
        MPI_Recv_init(x->receive, x->count, x->type, x->partner, TAG, x->comm, &x->requests[0]);
        MPI_Send_init(x->send, x->count, x->type, x->target, TAG, x->comm, &x->requests[1]);
    }
    if (is_buffered(routine))
        MPI_Buffer_attach(buffers->room, (int)buffers->room_bytes);
}

void swap_close(const struct routine *routine, const struct exchange *x)
{
    void *room;
    int bytes;
    if (routine->operation == swap_persistent && !idle(x))
        for (int i = 0; i < 2; i++)
            MPI_Request_free(&x->requests[i]);
    if (is_buffered(routine))
        MPI_Buffer_detach(&room, &bytes);
}
