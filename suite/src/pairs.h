/* The times of every pair of a tournament. Each rank keeps its own, so that rank 0 needs memory for one pair. */
#ifndef MPICOST_PAIRS_H
#define MPICOST_PAIRS_H

#include "json.h"
#include "routine.h"
#include "trials.h"

/* On rank 0: writes the key `pairs`. All other ranks must call pairs_answer. */
void pairs_write(struct json *json, const struct routine *routine, int round, size_t calls, struct trials *trials,
                 const struct control *control);
void pairs_answer(const struct routine *routine, int round, struct trials *trials, const struct control *control);

#endif
