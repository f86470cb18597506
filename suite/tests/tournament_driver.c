/* For each number of processes on standard input: its rounds, one per line, as the partners of ranks 0, 1, ... */
#include <stdio.h>

#include "tournament.h"

int main(void)
{
    int processes;
    while (scanf("%d", &processes) == 1) {
        printf("%d processes %d rounds\n", processes, tournament_rounds(processes));
        for (int round = 1; round <= tournament_rounds(processes); round++)
            for (int rank = 0; rank < processes; rank++)
                printf("%d%c", tournament_partner(processes, round, rank), rank + 1 < processes ? ' ' : '\n');
    }
    return 0;
}
