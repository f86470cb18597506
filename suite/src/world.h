/* Which rank runs where. */
#ifndef MPICOST_WORLD_H
#define MPICOST_WORLD_H

#include <mpi.h>
#include <stdbool.h>

#include "control.h"
#include "system_files.h"

struct world {
    struct control control; /* all ranks */
    struct control host;    /* the ranks of this host, which share memory and clock */
    struct control leaders; /* the first rank of each host; the others are no part of it */
    int hosts;    /* number of hosts */
    int per_node; /* ranks on the fullest host */
    char name[MPI_MAX_PROCESSOR_NAME + 1];
    char cpus[SYSTEM_LINE]; /* CPUs that this rank may run on, such as "0-3,8" */
    char core[SYSTEM_LINE]; /* CPUs of the core of the first of them, such as "0,64"; empty if that is all of its core */
};

void world_open(struct world *world);
void world_close(struct world *world);

/* Whether time is simulated, so that work takes none. */
bool world_is_simulated(void);

#endif
