#include "provenance.h"

#include "origin.h"
#include "places.h"
#include "sockets.h"
#include "standard_abi.h"

static void write_command(struct json *json, const struct provenance *provenance)
{
    json_key(json, "command");
    json_open(json, '[');
    for (int i = 0; i < provenance->argc; i++)
        json_string(json, provenance->argv[i]);
    json_close(json, ']');
}

/* What cooled the caches, and what it did to them; nothing of warm ones. */
static void write_coldness(struct json *json, const struct bench *bench)
{
    const struct coldness *coldness = &bench->coldness;
    const struct eviction *eviction = &bench->cooling.eviction;
    if (bench->options->cache == CACHE_WARM)
        return;
    if (eviction->instruction != NULL) {
        json_key_string(json, "evict_instruction", eviction->instruction);
        json_key_integer(json, "evict_line", (int64_t)eviction->line);
    }
    json_key(json, "coldness");
    json_open(json, '{');
    json_key_number(json, "ratio", coldness->ratio);
    json_key_number(json, "warm", seconds(coldness->warm));
    json_key_number(json, "cold", seconds(coldness->cold));
    json_key_number(json, "took", seconds(coldness->took));
    json_close(json, '}');
}

static void write_method(struct json *json, const struct provenance *provenance, const struct bench *bench)
{
    const struct options *options = bench->options;
    json_key_string(json, "cache", cache_names[options->cache]);
    json_key_integer(json, "flush_bytes", (int64_t)bench->cooling.flush.bytes);
    write_coldness(json, bench);
    json_key_string(json, "sync", sync_names[options->sync]);
    json_key_integer(json, "trials", (int64_t)options->trials);
    json_key_integer(json, "rounds", (int64_t)options->rounds);
    json_key_integer(json, "dropped", DROPPED);
    json_key_number(json, "settle", options->settle);
    json_key(json, "relative_error");
    if (options->relative_error > 0)
        json_number(json, options->relative_error);
    else
        json_null(json);
    if (options->back_to_back)
        json_key_integer(json, "back_to_back", (int64_t)options->warm_up);
    if (options->sync == SYNC_LOOP)
        json_key_number(json, "loop_seconds", options->loop_seconds);
    json_key_integer(json, "seed", (int64_t)provenance->seed);
}

static void write_clock(struct json *json, const struct clock *clock)
{
    json_key(json, "timer");
    json_open(json, '{');
    json_key_number(json, "resolution", seconds(clock->resolution));
    json_key_number(json, "overhead", clock->overhead_mean);
    json_key_string(json, "source", CLOCK_SOURCE);
    json_close(json, '}');
    json_key_number(json, "clock_error", seconds(clock->error));
}

/* What the cases are called by, which compare with no others. */
static const char *program_of(const struct plan *plan)
{
    return plan_has_kernels(plan) ? "kernels" : plan_is_placed(plan) ? "gpu" : "mpicost";
}

static void write_record(struct json *json, const struct provenance *provenance, const struct bench *bench,
                         const struct plan *plan)
{
    json_open(json, '{');
    json_key_string(json, "record", "run");
    json_key_integer(json, "schema", 2);
    json_key_string(json, "program", program_of(plan));
    origin_build(json);
    origin_library(json);
    standard_abi_write(json);
    origin_date(json, "date_utc");
    json_key_string(json, "token", bench->options->token);
    write_command(json, provenance);
    json_key_integer(json, "processes", bench->world->control.size);
    json_key_integer(json, "per_node", bench->world->per_node);
    places_write(json, bench->world);
    device_write(json, &bench->device, &bench->world->control);
    origin_machine(json, provenance->caches);
    write_method(json, provenance, bench);
    write_clock(json, &bench->clock);
    origin_environment(json);
    if (!world_is_simulated())
        json_key_integer(json, "tcp_packets", sockets_packets());
    json_key_integer(json, "cases", (int64_t)plan->visit_count);
    json_close(json, '}');
    json_newline(json);
}

static void answer(const struct bench *bench)
{
    places_answer(bench->world);
    device_answer(&bench->device, &bench->world->control);
}

void provenance_record(struct json *json, const struct provenance *provenance, const struct bench *bench,
                       const struct plan *plan)
{
    if (bench->world->control.rank == 0)
        write_record(json, provenance, bench, plan);
    else
        answer(bench);
}
