/* Where each rank is. Rank 0 writes it as it comes in and keeps nothing. */
#ifndef MPICOST_PLACES_H
#define MPICOST_PLACES_H

#include "json.h"
#include "world.h"

/* On rank 0: writes the keys `hosts` and `ranks`. All other ranks must call places_answer. */
void places_write(struct json *json, const struct world *world);
void places_answer(const struct world *world);

#endif
