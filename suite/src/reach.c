#include "reach.h"

#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "splitmix.h"
#include "tournament.h"

enum { TRIPS = 4 };

static int compare(const void *left, const void *right)
{
    int64_t a = *(const int64_t *)left, b = *(const int64_t *)right;
    return (a > b) - (a < b);
}

/* Both sides time their trips, the second one from an answer to the next question. */
static int64_t fastest_trip(const struct control *leaders, int partner, char *data, int bytes)
{
    bool asks = leaders->rank < partner;
    int64_t least = INT64_MAX, sent = 0;
    for (int i = 0; i <= TRIPS; i++) {
        if (asks || i > 0) {
            sent = clock_now();
            MPI_Send(data, bytes, MPI_BYTE, partner, TAG_REACH, leaders->comm);
        }
        if (asks && i == TRIPS)
            break;
        MPI_Recv(data, bytes, MPI_BYTE, partner, TAG_REACH, leaders->comm, MPI_STATUS_IGNORE);
        int64_t trip = clock_now() - sent;
        if ((asks || i > 0) && trip < least)
            least = trip;
    }
    return least;
}

/* Rounds of a tournament of all, evenly apart, from one that is drawn. */
static int choose_round(const struct control *leaders, uint64_t seed, int number)
{
    int rounds = tournament_rounds(leaders->size);
    int first = (int)(splitmix_at(seed, (uint64_t)leaders->size) % (uint64_t)rounds);
    return 1 + (int)((first + (int64_t)number * rounds / REACH_ROUNDS) % rounds);
}

void reach_measure(struct reach *reach, const struct control *leaders, uint64_t seed)
{
    static const int sizes[REACH_SIZES] = {REACH_SMALL, REACH_LARGE};
    char data[REACH_LARGE] = {0};
    memset(reach, 0, sizeof *reach);
    for (int round = 0; round < REACH_ROUNDS; round++) {
        int partner = tournament_partner(leaders->size, choose_round(leaders, seed, round), leaders->rank);
        for (int i = 0; partner >= 0 && i < REACH_SIZES; i++)
            reach->trips[round][i] = fastest_trip(leaders, partner, data, sizes[i]);
    }
}

int64_t reach_median(const struct reach *reach, int size)
{
    int64_t trips[REACH_ROUNDS];
    int count = 0;
    for (int round = 0; round < REACH_ROUNDS; round++)
        if (reach->trips[round][size] > 0)
            trips[count++] = reach->trips[round][size];
    qsort(trips, (size_t)count, sizeof trips[0], compare);
    return count > 0 ? trips[count / 2] : 0;
}
