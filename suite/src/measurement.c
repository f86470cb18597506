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
        .partner = routine_partner(item->routine, control->size, peer, control->rank),
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

/* Where this rank received wrong data first. */
struct witness {
    struct finding finding;
    size_t trial; /* counted from 1; 0: in the run before the timing, with fresh data */
    bool after;   /* in the run after the timing, with other fresh data */
};

static void report(const struct item *item, const struct exchange *exchange, const struct witness *witness)
{
    char text[320], when[48] = "before timing";
    const struct finding *finding = &witness->finding;
    if (witness->trial > 0)
        snprintf(when, sizeof when, "in trial %zu", witness->trial);
    if (witness->after)
        snprintf(when, sizeof when, "after timing");
    snprintf(text, sizeof text,
             "wrong data: %s peer %d bytes %llu: rank %d index %zu: %.17g instead of %.17g, %s",
             item->routine->name, exchange->peer, (unsigned long long)item->bytes, exchange->rank,
             finding->index, finding->received, finding->expected, when);
    print_error(text);
}

static void verify(struct witness *witness, const struct routine *routine, const struct exchange *exchange,
                   const struct pattern *pattern, size_t trial)
{
    if (witness->finding.wrong)
        return;
    witness->finding = buffers_verify(routine, exchange, pattern);
    witness->trial = trial;
}

/* One run on fresh data, which nobody times. */
static void verify_run(struct witness *witness, const struct routine *routine, const struct exchange *exchange,
                       const struct pattern *pattern)
{
    buffers_fill(routine, exchange, pattern);
    buffers_poison(routine, exchange);
    exchange->operation(exchange);
    verify(witness, routine, exchange, pattern, 0);
}

/* Trials, what each of them brought verified before the next one begins. */
static void run_verified(struct bench *bench, struct witness *witness, const struct routine *routine,
                         const struct exchange *exchange, const struct pattern *pattern, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buffers_poison(routine, exchange);
        bench->trials.stamps[i] =
            timing_trial(exchange, routine_meeting(routine), false, &bench->sync, &bench->flush);
        verify(witness, routine, exchange, pattern, bench->trials.count + i + 1);
    }
}

/* Trials one right after the other: the barrier of each is the synchronisation of the next one. */
static void run_back_to_back(struct bench *bench, const struct routine *routine,
                             const struct exchange *exchange, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bench->trials.stamps[i] =
            timing_trial(exchange, routine_meeting(routine), i > 0, &bench->sync, &bench->flush);
}

/* Calls whose times are forgotten. */
static void warm_up(struct bench *bench, const struct routine *routine, const struct exchange *exchange)
{
    size_t count, batch = bench->trials.batch;
    for (size_t left = bench->options->warm_up; left > 0; left -= count) {
        count = left < batch ? left : batch;
        run_back_to_back(bench, routine, exchange, count);
    }
}

static void sample(struct bench *bench, struct witness *witness, const struct routine *routine,
                   const struct exchange *exchange, const struct pattern *pattern)
{
    struct trials *trials = &bench->trials;
    trials->count = 0;
    warm_up(bench, routine, exchange);
    do {
        size_t left = trials->capacity - trials->count;
        size_t count = left < trials->batch ? left : trials->batch;
        if (bench->options->back_to_back)
            run_back_to_back(bench, routine, exchange, count);
        else
            run_verified(bench, witness, routine, exchange, pattern, count);
        trials_append(trials, &bench->world->control, &bench->clock, count,
                      routine_takes_part(routine, exchange), routine_legs(routine));
    } while (!sampling_is_done(bench));
}

/* True if this rank received what it must: before, in and after the timing. */
static bool verify_and_sample(struct bench *bench, const struct item *item, const struct exchange *exchange,
                              uint64_t seed)
{
    const struct routine *routine = item->routine;
    struct pattern pattern = {.seed = seed, .processes = exchange->processes};
    struct pattern other = {.seed = ~seed, .processes = exchange->processes};
    struct witness witness = {0};
    verify_run(&witness, routine, exchange, &pattern);
    sample(bench, &witness, routine, exchange, &pattern);
    bool well = !witness.finding.wrong;
    verify_run(&witness, routine, exchange, &other);
    witness.after = well;
    if (witness.finding.wrong)
        report(item, exchange, &witness);
    return !witness.finding.wrong;
}

/* What OSU and IMB print: of each rank the mean of its own times, and of these means the largest. On rank 0. */
static double slowest_mean(const struct bench *bench, const struct routine *routine, const struct exchange *exchange)
{
    const struct trials *trials = &bench->trials;
    int64_t work, sum = 0;
    for (size_t i = DROPPED; routine_takes_part(routine, exchange) && i < trials->count; i++)
        sum += trials->own[i];
    control_maximum(&bench->world->control, &sum, &work, 1);
    return seconds(sum) / (double)(trials->count - DROPPED) / routine_legs(routine);
}

struct measurement measurement_run(struct bench *bench, const struct item *item, int peer, uint64_t seed)
{
    const struct control *control = &bench->world->control;
    struct exchange exchange = measurement_exchange(item, peer, control);
    exchange.send = bench->buffers.send;
    exchange.receive = bench->buffers.receive;

    int64_t work, wrong = !verify_and_sample(bench, item, &exchange, seed);
    struct measurement result = {.correct = wrong == 0};
    control_maximum(control, &wrong, &work, 1);
    if (bench->options->back_to_back)
        result.slowest_mean = slowest_mean(bench, item->routine, &exchange);
    if (control->rank == 0) {
        const struct trials *trials = &bench->trials;
        result.correct = wrong == 0;
        result.measured = statistics_summarise(&result.summary, trials->t_max, trials->late, trials->count,
                                               DROPPED, seconds(bench->clock.resolution),
                                               trials->statistics_work);
    }
    return result;
}
