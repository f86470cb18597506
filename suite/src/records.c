#include "records.h"

#include <math.h>

#include "origin.h"
#include "pairs.h"
#include "sockets.h"

static void write_late(struct json *json, const struct trials *trials)
{
    json_key(json, "late");
    json_open(json, '[');
    for (size_t i = 0; i < trials->count; i++)
        json_integer(json, trials->late[i]);
    json_close(json, ']');
}

/* Trials of each visit. Only where there is one visit may it have stopped early. */
static void write_visits(struct json *json, const struct options *options, size_t trials)
{
    json_key(json, "visits");
    json_open(json, '[');
    for (size_t round = 0; round < options->rounds; round++)
        json_integer(json, (int64_t)(options->rounds == 1 ? trials : measurement_share(options, round)));
    json_close(json, ']');
}

/* Before and after each visit, null where it is not known. */
static void write_core_latency(struct json *json, const int64_t *times, size_t count)
{
    json_key(json, "core_latency");
    json_open(json, '[');
    for (size_t i = 0; i < count; i++)
        json_number(json, times[i] == CORE_LATENCY_UNKNOWN ? NAN : seconds(times[i]));
    json_close(json, ']');
}

static void write_summary(struct json *json, const struct summary *summary)
{
    json_key_number(json, "headline", summary->headline);
    json_key_number(json, "steady", summary->steady);
    json_key_number(json, "median", summary->median);
    json_key_number(json, "minimum", summary->minimum);
    json_key_number(json, "p90", summary->p90);
    json_key_number(json, "p99", summary->p99);
    json_key_integer(json, "kept", (int64_t)summary->kept);
    json_key_integer(json, "candidates", (int64_t)summary->candidates);
    json_key_integer(json, "removed", (int64_t)summary->removed);
    json_key_bool(json, "filter_saturated", summary->filter_saturated);
    json_key_bool(json, "bimodal", summary->bimodal);
}

static void write_case(struct json *json, const struct item *item, int peer, struct bench *bench,
                       const struct measurement *measurement)
{
    struct trials *trials = &bench->trials;
    json_open(json, '{');
    json_key_string(json, "record", "case");
    json_key_string(json, "routine", item->name);
    json_key_integer(json, "peer", peer);
    json_key_integer(json, "bytes", (int64_t)item->bytes);
    json_key_string(json, "unit", "s");
    json_key_integer(json, "trials", (int64_t)trials->count);
    write_visits(json, bench->options, trials->count);
    json_key_numbers(json, "t_max", trials->t_max, trials->count);
    json_key_numbers(json, "t_min", trials->t_min, trials->count);
    json_key_numbers(json, "t_global", trials->t_global, trials->count);
    json_key_numbers(json, "skew", trials->skew, trials->count);
    write_late(json, trials);
    if (bench->cores.anywhere)
        write_core_latency(json, measurement->core_latency, 2 * bench->options->rounds);
    if (item->routine->pairing == PAIRING_ROUND)
        pairs_write(json, item->routine, peer, measurement->calls, trials, &bench->world->control);
    if (measurement->measured)
        write_summary(json, &measurement->summary);
    if (bench->options->sync == SYNC_LOOP)
        json_key_integer(json, "calls", (int64_t)measurement->calls);
    if (bench->options->back_to_back)
        json_key_number(json, "slowest_mean", measurement->slowest_mean);
    json_key_bool(json, "verified", measurement->wrong.rank < 0);
    wrong_data_record(json, &measurement->wrong);
    json_close(json, '}');
    json_newline(json);
}

void record_case(struct json *json, const struct item *item, int peer, struct bench *bench,
                 const struct measurement *measurement)
{
    const struct control *control = &bench->world->control;
    if (bench->options->output == NULL)
        return;
    if (control->rank == 0)
        write_case(json, item, peer, bench, measurement);
    else if (item->routine->pairing == PAIRING_ROUND)
        pairs_answer(item->routine, peer, &bench->trials, control);
}

void record_end(struct json *json, const struct bench *bench, const struct totals *totals)
{
    if (json->file == NULL)
        return;
    json_open(json, '{');
    json_key_string(json, "record", "end");
    json_key_string(json, "token", bench->options->token);
    origin_date(json, "ended_utc");
    json_key_integer(json, "cases", (int64_t)totals->cases);
    json_key_bool(json, "verified", totals->correct);
    json_key_number(json, "elapsed", seconds(totals->elapsed));
    json_key_number(json, "timed", seconds(totals->timed));
    json_key_number(json, "clock_deviation", seconds(totals->clock_deviation));
    json_key_integer(json, "memory_bytes", totals->memory);
    json_key_integer(json, "flush_sum", totals->flush_sum);
    if (totals->evicted_lines > 0)
        json_key_integer(json, "evicted_lines", totals->evicted_lines);
    if (!world_is_simulated())
        json_key_integer(json, "tcp_packets", sockets_packets());
    lateness_write(json, &bench->lateness, bench->world);
    json_close(json, '}');
    json_newline(json);
}
