#include "places.h"

#include <string.h>

struct place {
    int rank;
    int host_size;
    char name[MPI_MAX_PROCESSOR_NAME + 1];
    char cpus[SYSTEM_LINE];
};

enum { TAG_PLACE = 1 };

static void place_of(struct place *place, const struct world *world)
{
    place->rank = world->control.rank;
    place->host_size = world->host_size;
    memcpy(place->name, world->name, sizeof place->name);
    memcpy(place->cpus, world->cpus, sizeof place->cpus);
}

/* The place of rank `from` of the communicator, which is that of rank 0 itself for 0. */
static void ask(struct place *place, const struct world *world, MPI_Comm comm, int from)
{
    if (from == 0)
        place_of(place, world);
    else
        MPI_Recv(place, sizeof *place, MPI_BYTE, from, TAG_PLACE, comm, MPI_STATUS_IGNORE);
}

static void write_host(struct json *json, const struct place *place)
{
    json_open(json, '{');
    json_key_string(json, "name", place->name);
    json_key_integer(json, "ranks", place->host_size);
    json_close(json, '}');
}

static void write_rank(struct json *json, const struct place *place)
{
    json_open(json, '{');
    json_key_integer(json, "rank", place->rank);
    json_key_string(json, "host", place->name);
    json_key_string(json, "cpus", place->cpus);
    json_close(json, '}');
}

static void write_all(struct json *json, const struct world *world, MPI_Comm comm, int count,
                      void (*write)(struct json *, const struct place *))
{
    struct place place;
    json_open(json, '[');
    for (int rank = 0; rank < count; rank++) {
        ask(&place, world, comm, rank);
        write(json, &place);
    }
    json_close(json, ']');
}

void places_write(struct json *json, const struct world *world)
{
    json_key(json, "hosts");
    write_all(json, world, world->leaders, world->hosts, write_host);
    json_key(json, "ranks");
    write_all(json, world, world->control.comm, world->control.size, write_rank);
}

void places_answer(const struct world *world)
{
    struct place place;
    memset(&place, 0, sizeof place);
    place_of(&place, world);
    if (world->leaders != MPI_COMM_NULL)
        MPI_Send(&place, sizeof place, MPI_BYTE, 0, TAG_PLACE, world->leaders);
    MPI_Send(&place, sizeof place, MPI_BYTE, 0, TAG_PLACE, world->control.comm);
}
