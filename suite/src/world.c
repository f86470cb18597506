#include "world.h"

#include <string.h>

void world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    control_open(&world->control);
    int rank = world->control.rank;
    MPI_Comm_split_type(world->control.comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &world->host);
    MPI_Comm_rank(world->host, &world->host_rank);
    MPI_Comm_size(world->host, &world->host_size);
    int color = world->host_rank == 0 ? 0 : MPI_UNDEFINED;
    MPI_Comm_split(world->control.comm, color, rank, &world->leaders);

    int64_t hosts = 0;
    if (rank == 0) {
        MPI_Comm_size(world->leaders, &world->hosts);
        hosts = world->hosts;
    }
    world->hosts = (int)control_all_maximum(&world->control, hosts);
    world->per_node = (int)control_all_maximum(&world->control, world->host_size);

    int length;
    MPI_Get_processor_name(world->name, &length);
    if (!system_suffix("/proc/self/status", "Cpus_allowed_list:", world->cpus, sizeof world->cpus))
        world->cpus[0] = '\0';
}

void world_close(struct world *world)
{
    if (world->leaders != MPI_COMM_NULL)
        MPI_Comm_free(&world->leaders);
    MPI_Comm_free(&world->host);
    control_close(&world->control);
}
