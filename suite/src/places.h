/* Where each rank is, on what, and what is loaded there in front of the MPI and below it. Rank 0 writes the ranks as they come in and keeps none. */
#ifndef MPICOST_PLACES_H
#define MPICOST_PLACES_H

#include "json.h"
#include "world.h"

/* On rank 0: writes the keys `hosts`, `ranks`, `cpu_model` and those of interposed.h and below.h. All other ranks must call places_answer. */
void places_write(struct json *json, const struct world *world);
void places_answer(const struct world *world);

#endif
