#include "places.h"

#include <string.h>

#include "below.h"
#include "gather.h"
#include "interposed.h"
#include "node_facts.h"
#include "processors.h"

struct place {
    int rank;
    int host_size;
    char name[MPI_MAX_PROCESSOR_NAME + 1];
    char cpus[SYSTEM_LINE];
    char core[SYSTEM_LINE];
};

static void place_of(struct place *place, const struct world *world)
{
    place->rank = world->control.rank;
    place->host_size = world->host.size;
    memcpy(place->name, world->name, sizeof place->name);
    memcpy(place->cpus, world->cpus, sizeof place->cpus);
    memcpy(place->core, world->core, sizeof place->core);
}

static void put_text(struct gather *gather, const char *text)
{
    size_t bytes = strlen(text) + 1;
    gather_put(gather, &bytes, sizeof bytes);
    gather_put(gather, text, bytes);
}

static void get_text(struct gather *gather, char *text)
{
    size_t bytes;
    gather_get(gather, &bytes, sizeof bytes);
    gather_get(gather, text, bytes);
}

static void put(struct gather *gather, const struct place *place)
{
    gather_put(gather, &place->rank, sizeof place->rank);
    gather_put(gather, &place->host_size, sizeof place->host_size);
    put_text(gather, place->name);
    put_text(gather, place->cpus);
    put_text(gather, place->core);
}

static void get(struct gather *gather, struct place *place)
{
    gather_get(gather, &place->rank, sizeof place->rank);
    gather_get(gather, &place->host_size, sizeof place->host_size);
    get_text(gather, place->name);
    get_text(gather, place->cpus);
    get_text(gather, place->core);
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
    if (place->core[0] != '\0')
        json_key_string(json, "core", place->core);
    json_close(json, '}');
}

/* The places of the ranks in `control`, on its rank 0. */
static void write_all(struct json *json, const struct world *world, const struct control *control,
                      void (*write)(struct json *, const struct place *))
{
    struct place place;
    struct gather gather;
    place_of(&place, world);
    gather_open(&gather, control);
    json_open(json, '[');
    write(json, &place);
    for (int rank = 1; rank < control->size; rank++) {
        get(&gather, &place);
        write(json, &place);
    }
    json_close(json, ']');
    gather_close(&gather);
}

static void answer(const struct world *world, const struct control *control)
{
    struct place place;
    struct gather gather;
    place_of(&place, world);
    gather_open(&gather, control);
    put(&gather, &place);
    gather_finish(&gather);
}

static void write_facts(struct json *json, char *text)
{
    json_open(json, '{');
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        char *tab = strchr(line, '\t');
        *tab = *end = '\0';
        json_key_string(json, line, tab + 1);
    }
    json_close(json, '}');
}

/* The facts of all hosts, in the order of `hosts`, on the first rank of `leaders`. */
static void write_all_facts(struct json *json, const struct control *leaders)
{
    struct gather gather;
    char text[NODE_FACTS_TEXT];
    size_t bytes;
    node_facts_read("", text, sizeof text);
    json_key(json, "node_facts");
    gather_open(&gather, leaders);
    json_open(json, '[');
    write_facts(json, text);
    for (int host = 1; host < leaders->size; host++) {
        gather_get(&gather, &bytes, sizeof bytes);
        gather_get(&gather, text, bytes);
        write_facts(json, text);
    }
    json_close(json, ']');
    gather_close(&gather);
}

static void answer_facts(const struct control *leaders)
{
    struct gather gather;
    char text[NODE_FACTS_TEXT];
    node_facts_read("", text, sizeof text);
    size_t bytes = strlen(text) + 1;
    gather_open(&gather, leaders);
    gather_put(&gather, &bytes, sizeof bytes);
    gather_put(&gather, text, bytes);
    gather_finish(&gather);
}

void places_write(struct json *json, const struct world *world)
{
    json_key(json, "hosts");
    write_all(json, world, &world->leaders, write_host);
    json_key(json, "ranks");
    write_all(json, world, &world->control, write_rank);
    processors_write(json, &world->leaders);
    if (!world_is_simulated())
        write_all_facts(json, &world->leaders);
    interposed_write(json, &world->control);
    if (!world_is_simulated())
        below_write(json);
}

void places_answer(const struct world *world)
{
    if (world->host.rank == 0)
        answer(world, &world->leaders);
    answer(world, &world->control);
    if (world->host.rank == 0)
        processors_answer(&world->leaders);
    if (world->host.rank == 0 && !world_is_simulated())
        answer_facts(&world->leaders);
    interposed_answer(&world->control);
}
