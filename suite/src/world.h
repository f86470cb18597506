/* Which rank runs where. */
#ifndef MPICOST_WORLD_H
#define MPICOST_WORLD_H

#include <mpi.h>

#include "control.h"
#include "system_files.h"

struct world {
    struct control control;
    MPI_Comm host;    /* the ranks of this host, which share memory and clock */
    MPI_Comm leaders; /* the first rank of each host; MPI_COMM_NULL on the others */
    int host_rank;
    int host_size;
    int hosts;    /* number of hosts */
    int per_node; /* ranks on the fullest host */
    char name[MPI_MAX_PROCESSOR_NAME + 1];
    char cpus[SYSTEM_LINE]; /* CPUs that this rank may run on, such as "0-3,8" */
};

void world_open(struct world *world);
void world_close(struct world *world);

#endif
