#include "control.h"

void control_open(struct control *control, MPI_Comm comm)
{
    *control = (struct control){.comm = comm, .rank = MPI_PROC_NULL};
    if (comm == MPI_COMM_NULL)
        return;
    MPI_Comm_rank(comm, &control->rank);
    MPI_Comm_size(comm, &control->size);
}

void control_close(struct control *control)
{
    if (control->comm != MPI_COMM_NULL)
        MPI_Comm_free(&control->comm);
}

int control_distance(const struct control *control)
{
    int distance = 1;
    while (distance < control->size && (control->rank & distance) == 0)
        distance *= 2;
    return distance;
}

void control_broadcast(const struct control *control, int64_t *values, int count)
{
    int distance = control_distance(control);
    if (control->rank != 0)
        MPI_Recv(values, count, MPI_INT64_T, control->rank - distance, TAG_TREE, control->comm,
                 MPI_STATUS_IGNORE);
    while ((distance /= 2) > 0)
        if (control->rank + distance < control->size)
            MPI_Send(values, count, MPI_INT64_T, control->rank + distance, TAG_TREE, control->comm);
}

void control_maximum(const struct control *control, int64_t *values, int64_t *work, int count)
{
    int limit = control_distance(control);
    for (int distance = 1; distance < limit && control->rank + distance < control->size; distance *= 2) {
        MPI_Recv(work, count, MPI_INT64_T, control->rank + distance, TAG_TREE, control->comm,
                 MPI_STATUS_IGNORE);
        for (int i = 0; i < count; i++)
            if (work[i] > values[i])
                values[i] = work[i];
    }
    if (control->rank != 0)
        MPI_Send(values, count, MPI_INT64_T, control->rank - limit, TAG_TREE, control->comm);
}

int64_t control_all_maximum(const struct control *control, int64_t value)
{
    int64_t work;
    control_maximum(control, &value, &work, 1);
    control_broadcast(control, &value, 1);
    return value;
}

int64_t control_all_minimum(const struct control *control, int64_t value)
{
    return -control_all_maximum(control, -value);
}

void control_barrier(const struct control *control)
{
    int rank = control->rank, size = control->size;
    for (int64_t distance = 1; distance < size; distance *= 2) {
        int to = (int)((rank + distance) % size);
        int from = (int)((rank - distance + size) % size);
        MPI_Sendrecv(NULL, 0, MPI_BYTE, to, TAG_BARRIER, NULL, 0, MPI_BYTE, from, TAG_BARRIER,
                     control->comm, MPI_STATUS_IGNORE);
    }
}

void control_send(const struct control *control, int to, const void *data, size_t bytes)
{
    MPI_Send(data, (int)bytes, MPI_BYTE, to, TAG_BYTES, control->comm);
}

void control_receive(const struct control *control, int from, void *data, size_t bytes)
{
    MPI_Recv(data, (int)bytes, MPI_BYTE, from, TAG_BYTES, control->comm, MPI_STATUS_IGNORE);
}
