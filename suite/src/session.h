/* From the options to the last record. */
#ifndef MPICOST_SESSION_H
#define MPICOST_SESSION_H

#include "options.h"
#include "outcome.h"
#include "plan.h"
#include "world.h"

/* Measures the cases of the plan. The outcome is the same on all ranks afterwards, and reported.
 * Collective. */
void session_run(const struct options *options, const struct world *world, struct plan *plan,
                 struct memory *memory, int argc, char **argv, struct outcome *outcome);

#endif
