#include "measurement.h"

#include <stdio.h>

enum { BATCH = 10 };

struct exchange measurement_exchange(const struct item *item, int peer, const struct control *control)
{
    return (struct exchange){
        .operation = item->routine->operation,
        .comm = MPI_COMM_WORLD,
        .op = combine_op(item->routine->combine),
        .count = (int)(item->bytes / sizeof(double)),
        .rank = control->rank,
        .processes = control->size,
        .peer = peer,
    };
}

size_t measurement_batch(const struct options *options)
{
    if (options->sync == SYNC_WINDOW)
        return 1; /* the next window depends on whether this one was missed */
    bool may_stop = options->relative_error > 0 && options->trials > BATCH;
    return may_stop ? BATCH : options->trials;
}

/* Rank 0: whether the headline is known well enough. Asked after every tenth trial. */
static bool accurate_enough(const struct bench *bench)
{
    const struct trials *trials = &bench->trials;
    double limit = bench->options->relative_error;
    struct summary summary;
    return limit > 0 && trials->count % BATCH == 0 &&
           statistics_summarise(&summary, trials->t_max, trials->late, trials->count, DROPPED,
                                seconds(bench->clock.resolution), trials->statistics_work) &&
           summary.standard_error <= limit * summary.headline;
}

static bool sampling_is_done(struct bench *bench)
{
    const struct trials *trials = &bench->trials;
    if (trials->count == trials->capacity)
        return true;
    int64_t done = 0;
    if (bench->world->control.rank == 0) {
        sync_adapt(&bench->sync, trials->late[trials->count - 1]);
        done = accurate_enough(bench);
    }
    control_broadcast(&bench->world->control, &done, 1);
    return done != 0;
}

static void sample(struct bench *bench, const struct routine *routine, const struct exchange *exchange)
{
    struct trials *trials = &bench->trials;
    trials->count = 0;
    do {
        size_t left = trials->capacity - trials->count;
        size_t count = left < trials->batch ? left : trials->batch;
        timing_run(exchange, &bench->sync, &bench->flush, trials->stamps, count);
        trials_append(trials, &bench->world->control, &bench->clock, count,
                      routine_takes_part(routine, exchange), routine->paired ? 2 : 1);
    } while (!sampling_is_done(bench));
}

static void report(const struct item *item, const struct exchange *exchange, const struct finding *finding,
                   const char *when)
{
    char text[256];
    snprintf(text, sizeof text, "wrong data: %s peer %d bytes %llu: rank %d index %zu: %.17g instead of %.17g, %s",
             item->routine->name, exchange->peer, (unsigned long long)item->bytes, exchange->rank,
             finding->index, finding->received, finding->expected, when);
    print_error(text);
}

/* Runs the routine once on fresh data and verifies what it brought. */
static struct finding trial_run(const struct routine *routine, const struct exchange *exchange,
                                const struct pattern *pattern)
{
    buffers_fill(routine, exchange, pattern);
    buffers_poison(routine, exchange);
    exchange->operation(exchange);
    return buffers_verify(routine, exchange, pattern);
}

/* Verification before, in the last trial of, and after the timing; this rank's view. */
static bool verify_and_sample(struct bench *bench, const struct item *item, const struct exchange *exchange,
                              uint64_t seed)
{
    static const char *const when[] = {"before timing", "in the last trial", "after timing"};
    const struct routine *routine = item->routine;
    struct pattern pattern = {.seed = seed, .processes = exchange->processes};
    struct finding findings[3];
    findings[0] = trial_run(routine, exchange, &pattern);
    buffers_poison(routine, exchange);
    sample(bench, routine, exchange);
    findings[1] = buffers_verify(routine, exchange, &pattern);
    pattern.seed = ~seed;
    findings[2] = trial_run(routine, exchange, &pattern);
    for (int i = 0; i < 3; i++)
        if (findings[i].wrong) {
            report(item, exchange, &findings[i], when[i]);
            return false;
        }
    return true;
}

struct measurement measurement_run(struct bench *bench, const struct item *item, int peer, uint64_t seed)
{
    const struct control *control = &bench->world->control;
    struct exchange exchange = measurement_exchange(item, peer, control);
    exchange.send = bench->buffers.send;
    exchange.receive = bench->buffers.receive;
    clock_synchronise(&bench->clock, bench->world);

    int64_t work, wrong = !verify_and_sample(bench, item, &exchange, seed);
    struct measurement result = {.correct = wrong == 0};
    control_maximum(control, &wrong, &work, 1);
    if (control->rank == 0) {
        const struct trials *trials = &bench->trials;
        result.correct = wrong == 0;
        result.measured = statistics_summarise(&result.summary, trials->t_max, trials->late, trials->count,
                                               DROPPED, seconds(bench->clock.resolution),
                                               trials->statistics_work);
    }
    return result;
}
