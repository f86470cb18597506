#include "routine.h"

#include <math.h>
#include <string.h>

#include "clock.h"
#include "tournament.h"

const struct routine *routine_find(const char *name)
{
    for (size_t i = 0; i < routine_count; i++)
        if (strcmp(routines[i].name, name) == 0)
            return &routines[i];
    return NULL;
}

bool routine_computes(const struct routine *routine)
{
    return routine->combine != COMBINE_NOTHING;
}

size_t element_size(const struct exchange *exchange)
{
    return exchange->type == MPI_BYTE ? 1 : sizeof(double);
}

int part_offset(const struct exchange *exchange, int rank)
{
    return (int)((int64_t)exchange->count * rank / exchange->processes);
}

int routine_peers(const struct routine *routine, int processes)
{
    switch (routine->pairing) {
    case PAIRING_ROOT:
        return processes - 1;
    case PAIRING_ROUND:
        return tournament_rounds(processes);
    default:
        return 0;
    }
}

bool routine_has_peers(const struct routine *routine)
{
    return routine->pairing == PAIRING_ROOT || routine->pairing == PAIRING_ROUND;
}

bool routine_swaps(const struct routine *routine)
{
    return routine->pairing != PAIRING_NONE && !routine_has_peers(routine);
}

/* The two of a pair have each other, so that pairs need no direction; a ring goes upwards. */
static int swap_partner(enum pairing pairing, int processes, int rank, int step)
{
    int half = processes / 2, partner = -1;
    if (processes < 2)
        return -1;
    if (pairing == PAIRING_RING)
        return (rank + step + processes) % processes;
    if (pairing == PAIRING_FIRST)
        partner = rank < 2 ? 1 - rank : -1;
    else if (pairing == PAIRING_NEXT)
        partner = rank % 2 == 0 ? rank + 1 : rank - 1;
    else if (rank < 2 * half)
        partner = rank < half ? rank + half : rank - half;
    return partner < processes ? partner : -1;
}

int routine_target(const struct routine *routine, int processes, int rank)
{
    return routine_swaps(routine) ? swap_partner(routine->pairing, processes, rank, 1) : -1;
}

int routine_partner(const struct routine *routine, int processes, int peer, int rank)
{
    if (routine_swaps(routine))
        return swap_partner(routine->pairing, processes, rank, -1);
    if (peer < 1 || peer > routine_peers(routine, processes))
        return -1;
    if (routine->pairing == PAIRING_ROUND)
        return tournament_partner(processes, peer, rank);
    return rank == 0 ? peer : rank == peer ? 0 : -1;
}

int routine_legs(const struct routine *routine)
{
    return routine_has_peers(routine) ? 2 : 1;
}

bool routine_takes_part(const struct routine *routine, const struct exchange *exchange)
{
    return routine->pairing == PAIRING_NONE || exchange->partner >= 0;
}

bool routine_is_barrier(const struct routine *routine)
{
    return strcmp(routine->sizes, "0") == 0;
}

enum { MEET = 100, MET, GO, OF_ONE_ROUND_TRIP = 2 };

/* An empty ping-pong: when it is over, both ranks are there, whichever of them was late. */
static void meet_partner(const struct exchange *x)
{
    if (x->rank < x->partner) {
        MPI_Send(NULL, 0, MPI_BYTE, x->partner, MEET, x->meets);
        MPI_Recv(NULL, 0, MPI_BYTE, x->partner, MET, x->meets, MPI_STATUS_IGNORE);
    } else if (x->partner >= 0) {
        MPI_Recv(NULL, 0, MPI_BYTE, x->partner, MEET, x->meets, MPI_STATUS_IGNORE);
        MPI_Send(NULL, 0, MPI_BYTE, x->partner, MET, x->meets);
    }
}

/* After a meeting the higher rank goes on a message earlier than the lower one. The two of a swap must begin at the
 * same time: the lower one measures the way there and back, and after its word waits for as long as that is on its
 * way. Those of a ring have no pair. */
static void start_with_partner(const struct exchange *x)
{
    if (x->partner < 0 || x->partner != x->target)
        return;
    meet_partner(x);
    if (x->rank > x->partner) {
        meet_partner(x);
        MPI_Recv(NULL, 0, MPI_BYTE, x->partner, GO, x->meets, MPI_STATUS_IGNORE);
        return;
    }
    int64_t before = clock_now();
    meet_partner(x);
    int64_t way = (clock_now() - before) / OF_ONE_ROUND_TRIP, sent = clock_now();
    MPI_Send(NULL, 0, MPI_BYTE, x->partner, GO, x->meets);
    while (clock_now() < sent + way)
        continue;
}

meeting *routine_meeting(const struct routine *routine)
{
    if (routine_has_peers(routine))
        return meet_partner;
    return routine_swaps(routine) && routine->pairing != PAIRING_RING ? start_with_partner : NULL;
}

double routine_divisor(const struct routine *routine, int processes)
{
    if (processes == 1 || routine->scaling == SCALING_NONE)
        return 1;
    return routine->scaling == SCALING_LOG2 ? log2(processes) : processes - 1;
}

MPI_Op combine_op(enum combine combine)
{
    switch (combine) {
    case COMBINE_SUM:
        return MPI_SUM;
    case COMBINE_MIN:
        return MPI_MIN;
    case COMBINE_MAX:
        return MPI_MAX;
    default:
        return MPI_OP_NULL;
    }
}
