/* Who plays with whom, when every rank has one partner at a time and in the end has met all others. */
#ifndef MPICOST_TOURNAMENT_H
#define MPICOST_TOURNAMENT_H

/* Rounds until every pair has met once: processes - 1, or as many as processes if their number is odd. */
int tournament_rounds(int processes);

/* Partner of `rank` in `round` (from 1 on), by the circle method: one rank stays, the others move on by a
 * place from round to round. -1 for the rank that is left over in a round of an odd number. */
int tournament_partner(int processes, int round, int rank);

#endif
