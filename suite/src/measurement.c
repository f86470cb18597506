#include "measurement.h"

#include <time.h>

#include "element.h"
#include "kernel.h"
#include "swaps.h"

enum { BATCH = 10 };
enum { CALLS_MOST = 10000 }; /* of a trial that is a loop */
/* Before the trials of a case: calls, or bytes if they are reached first, and ns at most. */
enum { SETTLING_CALLS = 256, SETTLING_BYTES = 4000000, SETTLING_MOST = 20000000 };
/* ns by which a rank comes to a barrier on purpose: ever later, and more often with the longest until all others were
 * there by half of it: on a busy machine, who should wait may not have run by then, and would pass */
static const int64_t LATENESS[] = {20000, 200000, 2000000, 20000000, 20000000, 20000000, 20000000};
enum { LATE_ALWAYS = 3, LATE_MOST = sizeof LATENESS / sizeof *LATENESS };

struct exchange measurement_exchange(const struct item *item, int peer, const struct control *control)
{
    bool numbers = item->bytes % sizeof(double) == 0;
    return (struct exchange){
        .operation = item->routine->operation,
        .comm = MPI_COMM_WORLD,
        .meets = control->comm,
        .type = numbers ? MPI_DOUBLE : MPI_BYTE,
        .op = combine_op(item->routine->combine),
        .count = (int)(numbers ? item->bytes / sizeof(double) : item->bytes),
        .rank = control->rank,
        .processes = control->size,
        .partner = routine_partner(item->routine, control->size, peer, control->rank),
        .target = routine_target(item->routine, control->size, control->rank),
        .calls = 1,
        .send_kind = item->send,
        .receive_kind = item->receive,
        .parks = routine_swaps(item->routine),
    };
}

size_t measurement_batch(const struct options *options)
{
    if (options->sync == SYNC_WINDOW)
        return 1; /* the next window depends on whether this one was missed */
    bool may_stop = options->relative_error > 0 && options->trials > BATCH;
    return may_stop ? BATCH : measurement_share(options, 0);
}

size_t measurement_share(const struct options *options, size_t round)
{
    return options->trials / options->rounds + (round < options->trials % options->rounds);
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

static bool sampling_is_done(struct bench *bench, size_t end)
{
    const struct trials *trials = &bench->trials;
    if (trials->count == end)
        return true;
    int64_t done = 0;
    if (bench->world->control.rank == 0) {
        sync_adapt(&bench->sync, trials->late[trials->count - 1]);
        done = accurate_enough(bench);
    }
    control_broadcast(&bench->world->control, &done, 1);
    return done != 0;
}

/* Looks at what this rank received, unless it was wrong before. Of a kernel all ranks look, every time: collective. */
static void verify(struct wrong_data *wrong, const struct routine *routine, const struct exchange *exchange,
                   const struct pattern *pattern, enum moment moment, size_t trial)
{
    if (wrong->rank >= 0 && routine->kernel == NULL)
        return;
    struct finding finding =
        routine->kernel != NULL ? routine->kernel->check(exchange) : buffers_verify(routine, exchange, pattern);
    if (finding.wrong && wrong->rank < 0)
        *wrong = (struct wrong_data){exchange->rank, (int64_t)trial, moment, finding};
}

/* One run, which nobody times. */
static void verify_run(struct wrong_data *wrong, const struct routine *routine, const struct exchange *exchange,
                       const struct pattern *pattern, enum moment moment)
{
    buffers_poison(routine, exchange);
    exchange->operation(exchange);
    verify(wrong, routine, exchange, pattern, moment, 0);
}

/* Looks whether this rank left a barrier before the last one had come, which `last_starts` tell on rank 0. No two clocks
 * agree to more than their uncertainty. Collective. */
static void check_departures(struct wrong_data *wrong, const struct bench *bench, const struct stamps *stamps,
                             int64_t *last_starts, size_t count, enum moment moment)
{
    const struct control *control = &bench->world->control;
    int64_t uncertainty = clock_uncertainty(&bench->clock, bench->world);
    for (size_t i = 0; i < count && control->rank == 0; i++)
        last_starts[i] = uncertainty < 0 ? INT64_MIN : last_starts[i] - uncertainty;
    control_broadcast(control, last_starts, (int)count);
    for (size_t i = 0; i < count && wrong->rank < 0; i++) {
        int64_t left = stamps[i].stop - clock_offset(&bench->clock, stamps[i].stop);
        int64_t trial = moment == MOMENT_TIMED ? (int64_t)(bench->trials.count - count + i) + 1 : 0;
        if (left < last_starts[i])
            *wrong = (struct wrong_data){control->rank, trial, moment, {.wrong = true, .early = last_starts[i] - left}};
    }
}

/* Its partner is the rank that is to be late, by `count` ns. It sleeps: the processor may be that of who should wait. */
static void come_late(const struct exchange *exchange)
{
    const struct timespec lateness = {.tv_nsec = exchange->count};
    if (exchange->rank == exchange->partner)
        nanosleep(&lateness, NULL);
}

/* A barrier to which one rank comes late on purpose, with nothing else between. Returns whether all others were there
 * by half of its lateness, so that none of them left after it unseen. Collective. */
static bool verify_barrier(struct wrong_data *wrong, struct bench *bench, const struct exchange *exchange, int late,
                           int64_t lateness)
{
    const struct control *control = &bench->world->control;
    struct cooling none = {.state = CACHE_WARM};
    struct exchange delayed = *exchange;
    delayed.partner = late;
    delayed.count = (int)lateness;
    struct stamps stamps = timing_trial(&delayed, come_late, false, 1, &bench->sync, &none);
    int64_t start = stamps.start - clock_offset(&bench->clock, stamps.start);
    int64_t last = control_all_maximum(control, start);
    check_departures(wrong, bench, &stamps, &(int64_t){last}, 1, MOMENT_BEFORE);
    return !control_all_maximum(control, control->rank != late && start > last - lateness / 2);
}

/* The first of all ranks is late, then the last. Simulated ranks cannot be. */
static void verify_barriers(struct wrong_data *wrong, struct bench *bench, const struct exchange *exchange)
{
    for (int i = 0; i < 2 && !world_is_simulated(); i++) {
        bool seen = false;
        for (int time = 0; time < LATE_MOST && (time < LATE_ALWAYS || !seen); time++)
            seen = verify_barrier(wrong, bench, exchange, i * (exchange->processes - 1), LATENESS[time]);
    }
}

/* The first trial of a later visit, whose time is forgotten: it is as disturbed by the cases before it as the one that
 * is dropped, which has a call before it too. */
static void run_untimed(struct bench *bench, struct wrong_data *wrong, const struct routine *routine,
                        const struct exchange *exchange, const struct pattern *pattern)
{
    struct exchange once = *exchange;
    once.calls = 1;
    verify_run(wrong, routine, &once, pattern, MOMENT_BEFORE);
    buffers_poison(routine, exchange);
    timing_trial(exchange, routine_meeting(routine), false, exchange->calls, &bench->sync, &bench->cooling);
    verify(wrong, routine, exchange, pattern, MOMENT_BEFORE, 0);
}

/* New data of a trial, and nothing left over of the one before it. */
static void renew(const struct routine *routine, const struct exchange *exchange, struct pattern *pattern, size_t trial)
{
    if (routine->kernel != NULL) {
        routine->kernel->prepare(exchange);
        return;
    }
    buffers_renew(routine, exchange, pattern, trial);
    buffers_poison(routine, exchange);
}

/* Trials on new data each, what each of them brought verified before the next one begins. */
static void run_verified(struct bench *bench, struct wrong_data *wrong, const struct routine *routine,
                         const struct exchange *exchange, struct pattern *pattern, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t trial = bench->trials.count + i + 1;
        renew(routine, exchange, pattern, trial);
        bench->trials.stamps[i] =
            timing_trial(exchange, routine_meeting(routine), false, exchange->calls, &bench->sync, &bench->cooling);
        verify(wrong, routine, exchange, pattern, MOMENT_TIMED, trial);
    }
}

/* Trials one right after the other: the barrier of each is the synchronisation of the next one. */
static void run_back_to_back(struct bench *bench, const struct routine *routine,
                             const struct exchange *exchange, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bench->trials.stamps[i] =
            timing_trial(exchange, routine_meeting(routine), i > 0, 1, &bench->sync, &bench->cooling);
}

/* Calls whose times are forgotten. */
static void warm_up(struct bench *bench, const struct routine *routine, const struct exchange *exchange)
{
    size_t count, batch = bench->trials.room.batch;
    for (size_t left = bench->options->warm_up; left > 0; left -= count) {
        count = left < batch ? left : batch;
        run_back_to_back(bench, routine, exchange, count);
    }
}

/* Trials whose times are forgotten: a library is slow until it has touched the memory that it sends through, and how
 * much of that the cases before have touched depends on how many they are. Collective. */
static void settle_library(struct bench *bench, const struct routine *routine, const struct exchange *exchange)
{
    struct cooling none = {.state = CACHE_WARM};
    size_t bytes = (size_t)exchange->count * element_size(exchange);
    size_t calls = bytes > 0 ? SETTLING_BYTES / bytes : SETTLING_CALLS;
    int64_t begin = clock_now(), goes_on = bench->options->settle > 0;
    for (size_t done = 0, next = 1; goes_on; next = done) {
        for (size_t i = 0; i < next; i++)
            timing_trial(exchange, routine_meeting(routine), false, 1, &bench->sync, &none);
        done += next;
        goes_on = done < calls && done < SETTLING_CALLS && clock_now() - begin < SETTLING_MOST;
        control_broadcast(&bench->world->control, &goes_on, 1); /* the time is that of rank 0 */
    }
}

/* Nanoseconds of a loop of calls, the shortest of three: one interruption must not pass for a slow call. Collective. */
static int64_t time_calls(struct bench *bench, const struct routine *routine, const struct exchange *exchange,
                          size_t calls)
{
    enum { TIMES = 3 };
    int64_t shortest = INT64_MAX;
    for (size_t i = 0; i < TIMES; i++) {
        struct stamps trial =
            timing_trial(exchange, routine_meeting(routine), false, calls, &bench->sync, &bench->cooling);
        int64_t took = control_all_maximum(&bench->world->control,
                                           routine_takes_part(routine, exchange) ? trial.stop - trial.start : 0);
        shortest = took < shortest ? took : shortest;
    }
    return shortest;
}

/* Calls of a trial that lasts as long as it is asked to, from trials whose times are forgotten. Collective. */
static size_t choose_calls(struct bench *bench, const struct routine *routine, const struct exchange *exchange)
{
    enum { PART = 4 };
    int64_t wanted = (int64_t)(bench->options->loop_seconds * 1e9), took = 0;
    size_t calls = 1;
    for (size_t next = 1; took < wanted / PART && calls < CALLS_MOST; next = 2 * calls) {
        calls = next < CALLS_MOST ? next : CALLS_MOST;
        took = time_calls(bench, routine, exchange, calls);
    }
    size_t needed = (size_t)((double)calls * (double)wanted / (double)(took > 0 ? took : 1));
    return needed < 1 ? 1 : needed < CALLS_MOST ? needed : CALLS_MOST;
}

/* Trials, until there are `end` of them. */
static void sample(struct bench *bench, struct wrong_data *wrong, const struct routine *routine,
                   const struct exchange *exchange, struct pattern *pattern, size_t end)
{
    struct trials *trials = &bench->trials;
    do {
        size_t left = end - trials->count;
        size_t count = left < trials->room.batch ? left : trials->room.batch;
        if (bench->options->back_to_back)
            run_back_to_back(bench, routine, exchange, count);
        else
            run_verified(bench, wrong, routine, exchange, pattern, count);
        trials_append(trials, &bench->world->control, &bench->clock, count,
                      routine_takes_part(routine, exchange), routine_legs(routine) * (int)exchange->calls);
        if (routine_is_barrier(routine))
            check_departures(wrong, bench, trials->stamps, trials_last_starts(trials, count), count, MOMENT_TIMED);
    } while (!sampling_is_done(bench, end));
}

/* The first visit begins with a run that is verified, and finds out how many calls a trial has. */
static size_t begin(struct wrong_data *wrong, struct bench *bench, const struct routine *routine,
                    const struct exchange *exchange, uint64_t seed)
{
    struct pattern pattern = buffers_pattern(routine, exchange, seed);
    buffers_fill(routine, exchange, &pattern);
    verify_run(wrong, routine, exchange, &pattern, MOMENT_BEFORE);
    if (routine_is_barrier(routine))
        verify_barriers(wrong, bench, exchange);
    settle_library(bench, routine, exchange);
    warm_up(bench, routine, exchange);
    return bench->options->sync == SYNC_LOOP ? choose_calls(bench, routine, exchange) : 1;
}

/* Leaves in `wrong` what this rank received that it must not have: before, in or after the timing. */
static void verify_and_sample(struct wrong_data *wrong, struct bench *bench, const struct routine *routine,
                              const struct exchange *exchange, uint64_t seed, size_t round, size_t *calls)
{
    if (routine->kernel != NULL)
        *calls = 1; /* each trial begins from nothing, and there is one round */
    else if (round == 0)
        *calls = begin(wrong, bench, routine, exchange, seed);
    struct exchange timed = *exchange;
    timed.calls = *calls;
    struct pattern pattern = buffers_pattern(routine, &timed, seed);
    if (round > 0 || *calls > 1)
        buffers_fill(routine, &timed, &pattern);
    if (round > 0)
        run_untimed(bench, wrong, routine, &timed, &pattern);
    sample(bench, wrong, routine, &timed, &pattern, bench->trials.count + measurement_share(bench->options, round));
    if (round + 1 < bench->options->rounds || routine->kernel != NULL)
        return;
    buffers_renew(routine, exchange, &pattern, bench->trials.count + 1);
    verify_run(wrong, routine, exchange, &pattern, MOMENT_AFTER);
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

void measurement_visit(struct measurement *measurement, struct bench *bench, const struct item *item,
                       const struct visit *visit, size_t round, uint64_t seed)
{
    const struct control *control = &bench->world->control;
    struct exchange exchange = measurement_exchange(item, visit->peer, control);
    buffers_assign(&bench->buffers, &exchange);
    buffers_span(bench->cooling.buffers, item->routine, &exchange);
    trials_select(&bench->trials, visit->number, visit->played, measurement->trials);

    MPI_Request requests[2];
    exchange.requests = requests;
    swap_open(item->routine, &exchange, &bench->buffers);

    struct wrong_data wrong = measurement->wrong;
    bool known = wrong.rank >= 0;
    int64_t before = core_latency_measure(&bench->cores, bench->world);
    verify_and_sample(&wrong, bench, item->routine, &exchange, seed, round, &measurement->calls);
    swap_close(item->routine, &exchange);
    int64_t after = core_latency_measure(&bench->cores, bench->world);
    measurement->trials = bench->trials.count;
    if (control->rank == 0) {
        measurement->core_latency[2 * round] = before;
        measurement->core_latency[2 * round + 1] = after;
    }
    if (known)
        return;
    if (wrong.rank >= 0)
        wrong_data_print(&wrong, item, visit->peer);
    wrong_data_collect(&wrong, control);
    measurement->wrong = wrong;
}

void measurement_finish(struct measurement *measurement, struct bench *bench, const struct item *item, int peer)
{
    const struct control *control = &bench->world->control;
    const struct trials *trials = &bench->trials;
    if (bench->options->back_to_back) {
        struct exchange exchange = measurement_exchange(item, peer, control);
        measurement->slowest_mean = slowest_mean(bench, item->routine, &exchange);
    }
    if (control->rank == 0)
        measurement->measured =
            statistics_summarise(&measurement->summary, trials->t_max, trials->late, trials->count, DROPPED,
                                 seconds(bench->clock.resolution), trials->statistics_work);
}
