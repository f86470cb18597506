/* Whether the cases fit into memory, found out before anything is allocated for them. */
#ifndef MPICOST_FIT_H
#define MPICOST_FIT_H

#include <stddef.h>

#include "options.h"
#include "outcome.h"
#include "plan.h"
#include "world.h"

/* Fills in send, receive and room. False, naming the first case that does not fit, if this rank would need more
 * than --memory-limit, or than its share of what is available on its host. */
bool fit_plan(struct need *need, const struct plan *plan, const struct options *options,
              const struct world *world, struct outcome *outcome);

#endif
