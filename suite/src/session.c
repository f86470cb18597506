#include "session.h"

#include <stdio.h>
#include <time.h>

#include "caches.h"
#include "cases.h"
#include "cpu_list.h"
#include "fit.h"
#include "lateness.h"
#include "measurement.h"
#include "output.h"
#include "provenance.h"
#include "records.h"
#include "settle.h"
#include "splitmix.h"
#include "table.h"

static uint64_t choose_seed(const struct options *options, const struct control *control)
{
    int64_t seed = (int64_t)options->seed;
    if (!options->seed_given) {
        seed = (int64_t)(splitmix_at((uint64_t)time(NULL), (uint64_t)clock_now()) >> 32);
        control_broadcast(control, &seed, 1);
    }
    return (uint64_t)seed;
}

/* Finds what the caches are cooled with, and the bytes of the flush array. Collective. */
static bool choose_cooling(struct cooling *cooling, uint64_t *bytes, const struct options *options,
                           const struct world *world, const struct caches *caches, struct outcome *outcome)
{
    *bytes = 0;
    cooling->state = options->cache;
    if (options->cache == CACHE_EVICT) {
        cooling->eviction = eviction_find();
        return cooling->eviction.instruction != NULL ||
               outcome_fail(outcome, EXIT_USAGE, "--cache evict: the processor has no instruction by which a program "
                                                 "takes lines out of the caches; use --cache flush");
    }
    if (options->cache == CACHE_WARM)
        return true;
    *bytes = options->flush_bytes > 0 ? options->flush_bytes : flush_needed(world, caches);
    return *bytes > 0 || outcome_fail(outcome, EXIT_USAGE,
                                      "--flush-bytes: the kernel does not tell the cache sizes; give a number");
}

/* Trials and cases that this rank keeps. */
static struct room room_of(const struct options *options, const struct plan *plan)
{
    return (struct room){options->trials, measurement_batch(options), plan->visit_count, plan->played};
}

static bool allocate(struct bench *bench, struct cases *cases, struct memory *memory, const struct plan *plan,
                     const struct need *need, uint64_t flush_bytes, struct outcome *outcome)
{
    const struct room room = room_of(bench->options, plan);
    bool well = flush_open(&bench->cooling.flush, memory, flush_bytes) &&
                buffers_open(&bench->buffers, memory, need, bench->world->control.size) &&
                trials_open(&bench->trials, memory, &room) &&
                cases_open(cases, memory, plan->visit_count, bench->options->rounds);
    if (well)
        return buffers_open_device(&bench->buffers, &bench->device, plan, outcome);
    return outcome_fail(outcome, EXIT_USAGE, "rank %d cannot allocate the %zu bytes that it needs",
                                bench->world->control.rank, need->fixed + need->send + need->receive + need->image + need->room);
}

/* Checks that everything fits, then allocates it. Collective. */
static bool set_up(struct bench *bench, struct cases *cases, struct memory *memory, const struct plan *plan,
                   const struct caches *caches, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    uint64_t flush_bytes;
    struct need need = {0};
    bool well = choose_cooling(&bench->cooling, &flush_bytes, bench->options, bench->world, caches, outcome) &&
                device_open(&bench->device, plan, bench->options, bench->world, outcome);
    const struct room room = room_of(bench->options, plan);
    size_t trials;
    if (well && !trials_needed(&room, &trials))
        well = outcome_fail(outcome, EXIT_USAGE, "%zu trials of %zu cases are more than an address can count",
                            room.capacity, room.cases + room.played);
    if (well)
        need.fixed = memory->allocated + (size_t)flush_bytes + trials +
                     cases_needed(plan->visit_count, bench->options->rounds) + buffers_counts_needed(control->size);
    if (well)
        fit_plan(&need, plan, bench->options, bench->world, outcome);
    if (!outcome_agree(outcome, control))
        return false;
    allocate(bench, cases, memory, plan, &need, flush_bytes, outcome);
    return outcome_agree(outcome, control);
}

static void tear_down(struct bench *bench, struct cases *cases, struct memory *memory)
{
    cases_close(cases, memory);
    trials_close(&bench->trials, memory);
    buffers_close(&bench->buffers, memory);
    flush_close(&bench->cooling.flush, memory);
}

/* Announces the case that rank 0 has next in a round, or the round's end, to all ranks, with what they have to know of
 * its earlier visits. In between, the offsets of the clocks are measured again if they are due. */
static struct measurement *next_visit(struct visit *visit, struct cases *cases, const struct plan *plan, size_t next,
                                      bool stop, struct bench *bench)
{
    enum { GOES_ON, ITEM, PEER, NUMBER, PLAYED, TRIALS, CALLS, WRONG, CLOCK, MESSAGE };
    const struct control *control = &bench->world->control;
    struct measurement *measurement = cases->list;
    int64_t message[MESSAGE] = {[CLOCK] = clock_is_due(&bench->clock)};
    if (control->rank == 0 && !stop && next < plan->visit_count) {
        const struct visit *own = &plan->visits[next];
        measurement = &cases->list[own->number];
        message[GOES_ON] = 1;
        message[ITEM] = (int64_t)own->item;
        message[PEER] = own->peer;
        message[NUMBER] = (int64_t)own->number;
        message[PLAYED] = (int64_t)own->played;
        message[TRIALS] = (int64_t)measurement->trials;
        message[CALLS] = (int64_t)measurement->calls;
        message[WRONG] = measurement->wrong.rank;
    }
    control_broadcast(control, message, MESSAGE);
    if (message[CLOCK] != 0)
        clock_synchronise(&bench->clock, bench->world);
    if (message[GOES_ON] == 0)
        return NULL;
    *visit = (struct visit){(size_t)message[ITEM], (int)message[PEER], (size_t)message[NUMBER], (size_t)message[PLAYED]};
    measurement->trials = (size_t)message[TRIALS];
    measurement->calls = (size_t)message[CALLS];
    measurement->wrong.rank = message[WRONG];
    return measurement;
}

/* After the last visit to a case. False if the output cannot be written. Collective. */
static bool finish_case(struct measurement *measurement, struct bench *bench, const struct item *item, int peer,
                        struct output *output, struct totals *totals, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    measurement_finish(measurement, bench, item, peer);
    totals->cases++;
    totals->correct = totals->correct && measurement->wrong.rank < 0;
    record_case(&output->json, item, peer, bench, measurement);
    if (control->rank != 0)
        return true;
    table_row(item, peer, control->size, measurement);
    return output_flush(output, outcome);
}

/* Visits each case once. Collective. */
static void run_round(struct bench *bench, struct cases *cases, const struct plan *plan, size_t round,
                      struct output *output, uint64_t seed, struct totals *totals, struct outcome *missed,
                      struct outcome *outcome)
{
    struct visit visit;
    struct measurement *measurement;
    bool last = round + 1 == bench->options->rounds, writable = output_flush(output, outcome);
    for (size_t i = 0; (measurement = next_visit(&visit, cases, plan, i, !writable, bench)) != NULL; i++) {
        const struct item *item = &plan->items[visit.item];
        measurement_visit(measurement, bench, item, &visit, round, splitmix_at(seed, visit.number));
        lateness_sample(&bench->lateness);
        if (!last)
            continue;
        writable = finish_case(measurement, bench, item, visit.peer, output, totals, outcome);
        if (bench->world->control.rank == 0 && !measurement->measured)
            outcome_fail(missed, EXIT_NO_TRIALS, "%s with %llu bytes: every trial missed its start window",
                         item->name, (unsigned long long)item->bytes);
    }
}

/* Runs the cases, round by round, until all are done or the output cannot be written. Collective. */
static bool run_cases(struct bench *bench, struct cases *cases, struct plan *plan, struct output *output,
                      uint64_t seed, struct totals *totals, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    struct outcome missed = {0};
    for (size_t round = 0; round < bench->options->rounds; round++) {
        if (round > 0)
            plan_shuffle(plan, seed, round);
        run_round(bench, cases, plan, round, output, seed, totals, &missed, outcome);
    }
    if (outcome->code == EXIT_ALL_WELL)
        *outcome = missed;
    bool well = outcome_agree(outcome, control);
    totals->correct = control_all_minimum(control, totals->correct) > 0;
    return well;
}

/* Brings all that there is so far to the disk. On rank 0. */
static bool keep(struct output *output, struct outcome *outcome)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return outcome_fail(outcome, EXIT_OUTPUT, "cannot write the table to standard output");
    return output_sync(output, outcome);
}

/* Collective. */
static void write_end(struct bench *bench, struct output *output, const struct totals *totals, struct outcome *outcome)
{
    if (bench->world->control.rank > 0) {
        lateness_answer(&bench->lateness, bench->world);
        return;
    }
    record_end(&output->json, bench, totals);
    if (output_sync(output, outcome))
        output_close(output, outcome);
}

/* The end record, once all that comes before it is safe. Collective. */
static void finish(struct bench *bench, const struct memory *memory, struct output *output, uint64_t seed,
                   int64_t started, struct totals *totals, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    lateness_close(&bench->lateness, bench->world, seed);
    totals->clock_deviation = bench->clock.deviation;
    totals->memory = control_all_maximum(control, (int64_t)memory->peak);
    totals->flush_sum = control_all_minimum(control, (int64_t)flush_sum(&bench->cooling.flush));
    totals->evicted_lines = control_all_minimum(control, (int64_t)bench->cooling.evicted);
    totals->timed = bench->trials.timed;
    totals->elapsed = clock_now() - started;
    if (control->rank == 0)
        keep(output, outcome);
    if (!outcome_agree(outcome, control))
        return;
    write_end(bench, output, totals, outcome);
    outcome_agree(outcome, control);
}

static void measure(struct bench *bench, struct cases *cases, struct memory *memory, struct plan *plan,
                    struct output *output, const struct provenance *provenance, int64_t started,
                    struct outcome *outcome)
{
    struct totals totals = {.correct = true};
    plan_shuffle(plan, provenance->seed, 0);
    bench->coldness = cooling_prove(&bench->cooling, &bench->world->control);
    if (bench->options->output != NULL)
        provenance_record(&output->json, provenance, bench, plan);
    if (bench->world->control.rank == 0)
        table_head(bench, plan);
    settle(&bench->world->control, bench->options->settle);
    lateness_open(&bench->lateness, bench->world, bench->options->output != NULL);
    if (run_cases(bench, cases, plan, output, provenance->seed, &totals, outcome))
        finish(bench, memory, output, provenance->seed, started, &totals, outcome);
    if (!totals.correct && outcome->code != EXIT_OUTPUT)
        outcome->code = EXIT_WRONG_DATA;
}

void session_run(const struct options *options, const struct world *world, struct plan *plan,
                 struct memory *memory, int argc, char **argv, struct outcome *outcome)
{
    int64_t started = clock_now();
    struct bench bench = {.options = options, .world = world};
    struct cases cases = {0};
    struct caches caches;
    struct output output;
    struct outcome closing;
    caches_read(&caches, cpu_list_first(world->cpus));
    if (set_up(&bench, &cases, memory, plan, &caches, outcome)) {
        clock_open(&bench.clock, world, options->output != NULL || options->sync == SYNC_WINDOW);
        sync_open(&bench.sync, options->sync, world, &bench.clock);
        core_latency_open(&bench.cores, world);
        struct provenance provenance = {argc, argv, &caches, choose_seed(options, &world->control)};
        output_open(&output, options->output, world->control.rank, outcome);
        if (outcome_agree(outcome, &world->control))
            measure(&bench, &cases, memory, plan, &output, &provenance, started, outcome);
        output_close(&output, &closing);
    }
    core_latency_close(&bench.cores);
    tear_down(&bench, &cases, memory);
}
