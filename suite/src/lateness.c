#include "lateness.h"

#include "clock.h"
#include "gather.h"

static const char INTERRUPTS[] = "/proc/interrupts";

void lateness_open(struct lateness *lateness, const struct world *world, bool wanted)
{
    *lateness = (struct lateness){.wanted = wanted, .real = wanted && !world_is_simulated(), .began = clock_now()};
    if (!lateness->real)
        return;
    lateness->counts = world->host.rank == 0 && interrupts_add(&lateness->interrupts, INTERRUPTS, -1);
    held_open(&lateness->held);
}

void lateness_sample(struct lateness *lateness)
{
    if (lateness->real)
        held_sample(&lateness->held);
}

/* The first rank of a host reads for all of them: the file is large. */
static void count_interrupts(struct lateness *lateness, const struct world *world)
{
    lateness->counts = lateness->counts && interrupts_add(&lateness->interrupts, INTERRUPTS, 1);
    int64_t counts = lateness->counts;
    control_broadcast(&world->host, &counts, 1);
    if (counts != 0)
        control_broadcast(&world->host, lateness->interrupts.of_cpu, INTERRUPTS_CPUS);
    lateness->rank.interrupts =
        counts != 0 ? interrupts_of(&lateness->interrupts, world->cpus) : INTERRUPTS_UNKNOWN;
}

static bool has_reach(const struct world *world)
{
    return world->hosts >= REACH_HOSTS;
}

void lateness_close(struct lateness *lateness, const struct world *world, uint64_t seed)
{
    if (!lateness->wanted)
        return;
    lateness->watched = clock_now() - lateness->began;
    if (lateness->real) {
        lateness->rank.waited = held_close(&lateness->held);
        lateness->rank.held = lateness->held;
        count_interrupts(lateness, world);
        control_barrier(&world->control);
        noise_probe(&lateness->rank.noise);
    }
    if (has_reach(world) && world->host.rank == 0)
        reach_measure(&lateness->reach, &world->leaders, seed);
}

static void write_detours(struct json *json, const char *key, const struct detour *list, int kept)
{
    if (kept == 0)
        return;
    json_key(json, key);
    json_open(json, '[');
    for (int i = 0; i < kept; i++) {
        json_open(json, '[');
        json_number(json, seconds(list[i].when));
        json_number(json, seconds(list[i].took));
        json_close(json, ']');
    }
    json_close(json, ']');
}

static void write_rank(struct json *json, const struct rank_lateness *rank)
{
    json_open(json, '{');
    if (rank->waited >= 0)
        json_key_number(json, "waited", seconds(rank->waited));
    write_detours(json, "holds", rank->held.holds, rank->held.kept);
    json_key_integer(json, "voluntary", rank->held.voluntary);
    json_key_integer(json, "involuntary", rank->held.involuntary);
    json_key_integer(json, "faults", rank->held.faults);
    if (rank->interrupts != INTERRUPTS_UNKNOWN)
        json_key_integer(json, "interrupts", rank->interrupts);
    json_key_number(json, "quantum", seconds(rank->noise.quantum));
    json_key_number(json, "span", seconds(rank->noise.span));
    json_key_number(json, "lost", seconds(rank->noise.lost));
    json_key_number(json, "longest", seconds(rank->noise.longest));
    /* A rank that nobody holds up needs no list. */
    if (rank->noise.lost >= rank->noise.span / DETOURS_TELL)
        write_detours(json, "detours", rank->noise.longest_of_all, rank->noise.kept);
    json_close(json, '}');
}

static void write_ranks(struct json *json, const struct lateness *lateness, const struct control *control)
{
    struct gather gather;
    struct rank_lateness rank;
    json_key(json, "ranks");
    gather_open(&gather, control);
    json_open(json, '[');
    write_rank(json, &lateness->rank);
    for (int i = 1; i < control->size; i++) {
        gather_get(&gather, &rank, sizeof rank);
        write_rank(json, &rank);
    }
    json_close(json, ']');
    gather_close(&gather);
}

static void write_host(struct json *json, const struct reach *reach)
{
    json_open(json, '[');
    for (int size = 0; size < REACH_SIZES; size++)
        json_number(json, seconds(reach_median(reach, size)));
    json_close(json, ']');
}

static void write_reach(struct json *json, const struct lateness *lateness, const struct control *leaders)
{
    struct gather gather;
    struct reach reach;
    json_key(json, "reach");
    gather_open(&gather, leaders);
    json_open(json, '[');
    write_host(json, &lateness->reach);
    for (int host = 1; host < leaders->size; host++) {
        gather_get(&gather, &reach, sizeof reach);
        write_host(json, &reach);
    }
    json_close(json, ']');
    gather_close(&gather);
}

void lateness_write(struct json *json, const struct lateness *lateness, const struct world *world)
{
    if (!lateness->wanted)
        return;
    json_key(json, "lateness");
    json_open(json, '{');
    json_key_number(json, "watched", seconds(lateness->watched));
    if (lateness->real)
        write_ranks(json, lateness, &world->control);
    if (has_reach(world))
        write_reach(json, lateness, &world->leaders);
    json_close(json, '}');
}

static void answer(const struct control *control, const void *data, size_t bytes)
{
    struct gather gather;
    gather_open(&gather, control);
    gather_put(&gather, data, bytes);
    gather_finish(&gather);
}

void lateness_answer(const struct lateness *lateness, const struct world *world)
{
    if (!lateness->wanted)
        return;
    if (lateness->real)
        answer(&world->control, &lateness->rank, sizeof lateness->rank);
    if (has_reach(world) && world->host.rank == 0)
        answer(&world->leaders, &lateness->reach, sizeof lateness->reach);
}
