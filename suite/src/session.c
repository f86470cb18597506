#include "session.h"

#include <stdio.h>
#include <time.h>

#include "caches.h"
#include "cpu_list.h"
#include "fit.h"
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

static bool allocate(struct bench *bench, struct memory *memory, const struct need *need, uint64_t flush_bytes,
                     struct outcome *outcome)
{
    bool well = flush_open(&bench->cooling.flush, memory, flush_bytes) &&
                buffers_open(&bench->buffers, memory, need, bench->world->control.size) &&
                trials_open(&bench->trials, memory, bench->options->trials, measurement_batch(bench->options));
    return well || outcome_fail(outcome, EXIT_USAGE, "rank %d cannot allocate the %zu bytes that it needs",
                                bench->world->control.rank, need->fixed + need->send + need->receive + need->room);
}

/* Checks that everything fits, then allocates it. Collective. */
static bool set_up(struct bench *bench, struct memory *memory, const struct plan *plan,
                   const struct caches *caches, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    uint64_t flush_bytes;
    struct need need = {0};
    bool well = choose_cooling(&bench->cooling, &flush_bytes, bench->options, bench->world, caches, outcome);
    need.fixed = memory->allocated + (size_t)flush_bytes +
                 trials_needed(bench->options->trials, measurement_batch(bench->options)) +
                 buffers_counts_needed(control->size);
    if (well)
        fit_plan(&need, plan, bench->options, bench->world, outcome);
    if (!outcome_agree(outcome, control))
        return false;
    allocate(bench, memory, &need, flush_bytes, outcome);
    return outcome_agree(outcome, control);
}

static void tear_down(struct bench *bench, struct memory *memory)
{
    trials_close(&bench->trials, memory);
    buffers_close(&bench->buffers, memory);
    flush_close(&bench->cooling.flush, memory);
}

/* Announces the case that rank 0 has next, or the end, to all ranks. In between, the offsets of the clocks are
 * measured again if they are due. */
static bool next_visit(struct visit *visit, const struct plan *plan, size_t number, bool stop, struct bench *bench)
{
    enum { GOES_ON, ITEM, PEER, CLOCK, MESSAGE };
    const struct control *control = &bench->world->control;
    int64_t message[MESSAGE] = {[CLOCK] = clock_is_due(&bench->clock)};
    if (control->rank == 0 && !stop && number < plan->visit_count) {
        message[GOES_ON] = 1;
        message[ITEM] = (int64_t)plan->visits[number].item;
        message[PEER] = plan->visits[number].peer;
    }
    control_broadcast(control, message, MESSAGE);
    if (message[CLOCK] != 0)
        clock_synchronise(&bench->clock, bench->world);
    *visit = (struct visit){(size_t)message[ITEM], (int)message[PEER]};
    return message[GOES_ON] != 0;
}

static void note_result(const struct item *item, const struct measurement *measurement, const struct control *control,
                        struct totals *totals, struct outcome *lateness)
{
    totals->cases++;
    totals->correct = totals->correct && measurement->wrong.rank < 0;
    if (control->rank == 0 && !measurement->measured)
        outcome_fail(lateness, EXIT_NO_TRIALS, "%s with %llu bytes: every trial missed its start window",
                     item->routine->name, (unsigned long long)item->bytes);
}

/* Runs the cases until all are done or the output cannot be written. Collective. */
static bool run_cases(struct bench *bench, const struct plan *plan, struct output *output, uint64_t seed,
                      struct totals *totals, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    struct outcome lateness = {0};
    struct visit visit;
    bool writable = output_flush(output, outcome);
    while (next_visit(&visit, plan, totals->cases, !writable, bench)) {
        const struct item *item = &plan->items[visit.item];
        struct measurement measurement =
            measurement_run(bench, item, visit.peer, splitmix_at(seed, totals->cases));
        note_result(item, &measurement, control, totals, &lateness);
        record_case(&output->json, item, visit.peer, bench, &measurement);
        if (control->rank != 0)
            continue;
        table_row(item, visit.peer, control->size, &measurement);
        writable = output_flush(output, outcome);
    }
    if (outcome->code == EXIT_ALL_WELL)
        *outcome = lateness;
    bool well = outcome_agree(outcome, control);
    totals->correct = control_all_minimum(control, totals->correct) > 0;
    return well;
}

static bool write_end(struct output *output, const char *token, const struct totals *totals, struct outcome *outcome)
{
    if (fflush(stdout) != 0 || ferror(stdout))
        return outcome_fail(outcome, EXIT_OUTPUT, "cannot write the table to standard output");
    if (!output_sync(output, outcome))
        return false;
    record_end(&output->json, token, totals);
    return output_sync(output, outcome) && output_close(output, outcome);
}

/* The end record, once all that comes before it is safe. Collective. */
static void finish(struct bench *bench, const struct memory *memory, struct output *output, int64_t started,
                   struct totals *totals, struct outcome *outcome)
{
    const struct control *control = &bench->world->control;
    totals->clock_deviation = bench->clock.deviation;
    totals->memory = control_all_maximum(control, (int64_t)memory->peak);
    totals->flush_sum = control_all_minimum(control, (int64_t)flush_sum(&bench->cooling.flush));
    totals->evicted_lines = control_all_minimum(control, (int64_t)bench->cooling.evicted);
    totals->timed = bench->trials.timed;
    totals->elapsed = clock_now() - started;
    if (control->rank == 0)
        write_end(output, bench->options->token, totals, outcome);
    outcome_agree(outcome, control);
}

static void measure(struct bench *bench, struct memory *memory, struct plan *plan, struct output *output,
                    const struct provenance *provenance, int64_t started, struct outcome *outcome)
{
    struct totals totals = {.correct = true};
    plan_shuffle(plan, provenance->seed);
    bench->coldness = cooling_prove(&bench->cooling, &bench->world->control);
    if (bench->options->output != NULL)
        provenance_record(&output->json, provenance, bench, plan);
    if (bench->world->control.rank == 0)
        table_head(bench, plan);
    settle(&bench->world->control, bench->options->settle);
    if (run_cases(bench, plan, output, provenance->seed, &totals, outcome))
        finish(bench, memory, output, started, &totals, outcome);
    if (!totals.correct && outcome->code != EXIT_OUTPUT)
        outcome->code = EXIT_WRONG_DATA;
}

void session_run(const struct options *options, const struct world *world, struct plan *plan,
                 struct memory *memory, int argc, char **argv, struct outcome *outcome)
{
    int64_t started = clock_now();
    struct bench bench = {.options = options, .world = world};
    struct caches caches;
    struct output output;
    struct outcome closing;
    caches_read(&caches, cpu_list_first(world->cpus));
    if (set_up(&bench, memory, plan, &caches, outcome)) {
        clock_open(&bench.clock, world, options->output != NULL || options->sync == SYNC_WINDOW);
        sync_open(&bench.sync, options->sync, world, &bench.clock);
        core_latency_open(&bench.cores, world);
        struct provenance provenance = {argc, argv, &caches, choose_seed(options, &world->control)};
        output_open(&output, options->output, world->control.rank, outcome);
        if (outcome_agree(outcome, &world->control))
            measure(&bench, memory, plan, &output, &provenance, started, outcome);
        output_close(&output, &closing);
    }
    core_latency_close(&bench.cores);
    tear_down(&bench, memory);
}
