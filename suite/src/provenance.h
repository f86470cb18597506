/* The `run` record: what ran, where, on what and with what. */
#ifndef MPICOST_PROVENANCE_H
#define MPICOST_PROVENANCE_H

#include "caches.h"
#include "json.h"
#include "measurement.h"
#include "plan.h"

struct provenance {
    int argc;
    char **argv;
    const struct caches *caches;
    uint64_t seed;
};

/* Rank 0 asks the others where they are and writes the record; they answer. Collective. */
void provenance_record(struct json *json, const struct provenance *provenance, const struct bench *bench,
                       const struct plan *plan);

#endif
