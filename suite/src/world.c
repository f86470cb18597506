#include "world.h"

#include <string.h>

#include "cpu_list.h"
#include "node_facts.h"

void world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    MPI_Comm all, host, leaders;
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    control_open(&world->control, all);
    int rank = world->control.rank;
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &host);
    control_open(&world->host, host);
    MPI_Comm_split(all, world->host.rank == 0 ? 0 : MPI_UNDEFINED, rank, &leaders);
    control_open(&world->leaders, leaders);
    world->hosts = (int)control_all_maximum(&world->control, world->leaders.size);
    world->per_node = (int)control_all_maximum(&world->control, world->host.size);

    int length;
    MPI_Get_processor_name(world->name, &length);
    if (!system_suffix("/proc/self/status", "Cpus_allowed_list:", world->cpus, sizeof world->cpus))
        world->cpus[0] = '\0';
    if (world->cpus[0] != '\0' && !world_is_simulated())
        node_core_read("", cpu_list_first(world->cpus), world->core, sizeof world->core);
}

void world_close(struct world *world)
{
    control_close(&world->leaders);
    control_close(&world->host);
    control_close(&world->control);
}

bool world_is_simulated(void)
{
    char version[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(version, &length);
    return strncmp(version, "SMPI", 4) == 0;
}
