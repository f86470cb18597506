/* Who was held up: of each rank what the kernel and a probe tell, of each host how far it is from others. Nothing of it is
 * sent before the last case is over. */
#ifndef MPICOST_LATENESS_H
#define MPICOST_LATENESS_H

#include "held.h"
#include "interrupts.h"
#include "json.h"
#include "reach.h"
#include "world.h"

struct lateness {
    bool wanted; /* somebody will read it */
    bool real;   /* time is not simulated, so that there is something that takes it away */
    int64_t began, watched; /* ns */
    bool counts; /* the interrupts of this host are known; on its first rank */
    struct held held;
    struct interrupts interrupts;
    struct rank_lateness {
        int64_t waited;     /* ns; -1 if not known */
        int64_t interrupts; /* INTERRUPTS_UNKNOWN if not known */
        struct held held;
        struct noise noise;
    } rank;
    struct reach reach; /* of a first rank of a host, if there are enough of them */
};

void lateness_open(struct lateness *lateness, const struct world *world, bool wanted);

/* Between two visits. */
void lateness_sample(struct lateness *lateness);

/* After the last case: asks the kernel, then probes. Collective. */
void lateness_close(struct lateness *lateness, const struct world *world, uint64_t seed);

/* On rank 0: the key `lateness` of the end record. All other ranks must call lateness_answer. */
void lateness_write(struct json *json, const struct lateness *lateness, const struct world *world);
void lateness_answer(const struct lateness *lateness, const struct world *world);

#endif
