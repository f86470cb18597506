#include <mpi.h>
#include <stdio.h>

#include "build.h"
#include "memory.h"
#include "options.h"
#include "outcome.h"
#include "plan.h"
#include "session.h"
#include "world.h"

static void print_version(void)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    printf("mpicost %s\nsource hash %s\n%s\n", build_version, build_source_hash, library);
}

static void print_list(const struct plan *plan)
{
    for (size_t i = 0; i < plan->visit_count; i++) {
        const struct item *item = &plan->items[plan->visits[i].item];
        printf("%s %d %llu\n", item->name, plan->visits[i].peer, (unsigned long long)item->bytes);
    }
}

/* What was asked for besides measuring; on rank 0. */
static void answer(const struct options *options, const struct plan *plan, struct outcome *outcome)
{
    if (options->action == ACTION_HELP)
        fputs(options_help, stdout);
    else if (options->action == ACTION_VERSION)
        print_version();
    else
        print_list(plan);
    if (fflush(stdout) != 0)
        outcome_fail(outcome, EXIT_OUTPUT, "cannot write to standard output");
}

/* Reads the command line, which must be the same on all ranks. Collective. */
static bool read_command_line(struct options *options, const struct control *control, int argc, char **argv,
                              struct outcome *outcome)
{
    int64_t fingerprint = options_fingerprint(argc, argv);
    if (control_all_maximum(control, fingerprint) != control_all_minimum(control, fingerprint))
        outcome_fail(outcome, EXIT_USAGE, "the ranks were started with different arguments");
    else
        options_parse(options, argc, argv, outcome);
    return outcome_agree(outcome, control);
}

static void run(const struct world *world, int argc, char **argv, struct outcome *outcome)
{
    struct options options;
    struct memory memory = {0};
    struct plan plan = {0};
    if (!read_command_line(&options, &world->control, argc, argv, outcome))
        return;
    bool needs_plan = options.action == ACTION_MEASURE || options.action == ACTION_LIST;
    if (needs_plan)
        plan_open(&plan, &memory, &options, &world->control, outcome);
    if (outcome_agree(outcome, &world->control)) {
        if (options.action == ACTION_MEASURE) {
            session_run(&options, world, &plan, &memory, argc, argv, outcome);
        } else {
            if (world->control.rank == 0)
                answer(&options, &plan, outcome);
            outcome_agree(outcome, &world->control);
        }
    }
    plan_close(&plan, &memory);
}

int main(int argc, char **argv)
{
    struct world world;
    struct outcome outcome = {.code = EXIT_ALL_WELL};
    MPI_Init(&argc, &argv);
    world_open(&world);
    run(&world, argc, argv, &outcome);
    world_close(&world);
    MPI_Finalize();
    return (int)outcome.code;
}
