#include "world.h"

#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "cpu_list.h"
#include "node_facts.h"

#define BOOT "/proc/sys/kernel/random/boot_id" /* of the kernel that runs: containers of a node share it */

static void open_hosts(struct world *world, MPI_Comm host)
{
    MPI_Comm leaders;
    control_open(&world->host, host);
    MPI_Comm_split(world->control.comm, world->host.rank == 0 ? 0 : MPI_UNDEFINED, world->control.rank, &leaders);
    control_open(&world->leaders, leaders);
    world->hosts = (int)control_all_maximum(&world->control, world->leaders.size);
    world->per_node = (int)control_all_maximum(&world->control, world->host.size);
}

/* Two halves of a hash (FNV-1a) of the name of this host and the start of its kernel. Another pair on each rank if the
 * kernel does not tell. */
static void identify_host(const struct world *world, int halves[2])
{
    char boot[SYSTEM_LINE], both[sizeof world->name + sizeof boot];
    uint64_t hash = 14695981039346656037u;
    if (!system_line(BOOT, boot, sizeof boot))
        snprintf(boot, sizeof boot, "rank %d", world->control.rank);
    snprintf(both, sizeof both, "%s%s", world->name, boot);
    for (const char *c = both; *c != '\0'; c++)
        hash = (hash ^ (unsigned char)*c) * 1099511628211u;
    halves[0] = (int)(hash >> 33);
    halves[1] = (int)(hash & INT_MAX);
}

/* An MPI that must not use the memory of a node, as MPICH with MPIR_CVAR_NOLOCAL=1, says of each rank that it is alone. */
static void join_hosts(struct world *world)
{
    int halves[2];
    MPI_Comm half, host;
    identify_host(world, halves);
    MPI_Comm_split(world->control.comm, halves[0], world->control.rank, &half);
    MPI_Comm_split(half, halves[1], world->control.rank, &host);
    MPI_Comm_free(&half);
    control_close(&world->leaders);
    control_close(&world->host);
    open_hosts(world, host);
}

void world_open(struct world *world)
{
    memset(world, 0, sizeof *world);
    MPI_Comm all, host;
    int length;
    MPI_Comm_dup(MPI_COMM_WORLD, &all);
    control_open(&world->control, all);
    MPI_Get_processor_name(world->name, &length);
    MPI_Comm_split_type(all, MPI_COMM_TYPE_SHARED, world->control.rank, MPI_INFO_NULL, &host);
    open_hosts(world, host);
    if (world->per_node == 1 && world->hosts > 1 && !world_is_simulated())
        join_hosts(world);

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
