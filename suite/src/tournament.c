#include "tournament.h"

int tournament_rounds(int processes)
{
    if (processes < 2)
        return 0;
    return processes % 2 == 0 ? processes - 1 : processes;
}

/* Ranks below the number of rounds, which is odd, form the circle. Two of them meet when their sum is
 * 2 x round - 2 modulo that number. The one that would meet itself plays with the rank that stays. */
int tournament_partner(int processes, int round, int rank)
{
    int rounds = tournament_rounds(processes);
    int alone = round - 1, stays = processes % 2 == 0 ? processes - 1 : -1;
    if (rank == stays)
        return alone;
    if (rank == alone)
        return stays;
    return (int)((2LL * alone - rank + rounds) % rounds);
}
