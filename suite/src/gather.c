#include "gather.h"

#include <stdbool.h>
#include <string.h>

void gather_open(struct gather *gather, const struct control *control)
{
    gather->control = control;
    gather->distance = 0;
    gather->filled = gather->taken = gather->pending = 0;
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* A message that is not full is the last one of its sender, even if it is empty. */
static void send_on(struct gather *gather)
{
    const struct control *control = gather->control;
    MPI_Send(gather->out, (int)gather->pending, MPI_BYTE, control->rank - control_distance(control), TAG_GATHER,
             control->comm);
    gather->pending = 0;
}

static void receive(struct gather *gather)
{
    const struct control *control = gather->control;
    MPI_Status status;
    int count;
    MPI_Recv(gather->in, GATHER_BYTES, MPI_BYTE, control->rank + gather->distance, TAG_GATHER, control->comm,
             &status);
    MPI_Get_count(&status, MPI_BYTE, &count);
    gather->filled = (size_t)count;
    gather->taken = 0;
}

/* Moves on to the next message of this child, or to the next child. False if there is none. */
static bool next_message(struct gather *gather)
{
    const struct control *control = gather->control;
    bool child_is_done = gather->filled < GATHER_BYTES;
    if (child_is_done)
        gather->distance = gather->distance == 0 ? 1 : 2 * gather->distance;
    if (gather->distance >= control_distance(control) || control->rank + gather->distance >= control->size)
        return false;
    receive(gather);
    return true;
}

void gather_put(struct gather *gather, const void *data, size_t bytes)
{
    const char *rest = data;
    while (bytes > 0) {
        size_t piece = least(bytes, GATHER_BYTES - gather->pending);
        memcpy(gather->out + gather->pending, rest, piece);
        gather->pending += piece;
        if (gather->pending == GATHER_BYTES)
            send_on(gather);
        rest += piece;
        bytes -= piece;
    }
}

void gather_finish(struct gather *gather)
{
    while (next_message(gather))
        gather_put(gather, gather->in, gather->filled);
    send_on(gather);
}

void gather_get(struct gather *gather, void *data, size_t bytes)
{
    char *rest = data;
    while (bytes > 0 && (gather->taken < gather->filled || next_message(gather))) {
        size_t piece = least(bytes, gather->filled - gather->taken);
        memcpy(rest, gather->in + gather->taken, piece);
        gather->taken += piece;
        rest += piece;
        bytes -= piece;
    }
}

void gather_close(struct gather *gather)
{
    while (next_message(gather))
        continue;
}
