#include "options.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { TRIALS_DEFAULT = 51, TRIALS_LEAST = 2, TRIALS_MOST = 1000000, SETTLE_MOST = 60, LOOP_MOST = 10 };
enum { ROUNDS_DEFAULT = 5, ROUNDS_MOST = 1000, VISIT_LEAST = 2 };

static const double LOOP_SECONDS = 0.01;

const char *const sync_names[] = {"dissemination", "barrier", "window", "loop"};

const char options_help[] =
    "usage: mpicost [options]\n"
    "Times MPI routines by the methods of Luecke et al. (2001, 2003).\n\n"
    "  --routine LIST        routines to time, comma-separated (default: all of the family);\n"
    "                        bcast:8:10000 times a routine at sizes of its own; bcast.DH has its send buffer\n"
    "                        on the GPU (D) and its receive buffer on the host (H); M: managed by the driver\n"
    "  --family NAME         luecke (default), luecke2001 or luecke2003: routines and sizes; compositions:\n"
    "                        what can be put together from other calls, beside what it replaces;\n"
    "                        swaps: pairs and a ring by five protocols; sends: ping-pong by modes of sending;\n"
    "                        kernels: the application kernels of size A (needs --rounds 1);\n"
    "                        gpu: routines by where their buffers lie\n"
    "  --bytes LIST          sizes in bytes, in place of the family's; multiples of 8 where the routine\n"
    "                        computes, or messages are of doubles; others are of bytes\n"
    "  --peers LIST          ranks that rank 0 plays ping-pong with, rounds of a tournament\n"
    "                        (default: all)\n"
    "  --trials N            trials per case, the first is dropped (default: 51)\n"
    "  --rounds N            times that each case is visited, every time in another random order and for\n"
    "                        its share of the trials, two or more (default: 5; 1 with --relative-error\n"
    "                        and with --back-to-back)\n"
    "  --sync KIND           dissemination (default), barrier, window or loop: a trial is then many calls\n"
    "                        one right after the other, its time their mean: pipelined (needs --cache warm)\n"
    "  --loop-seconds S      how long the calls of such a trial last (default: 0.01)\n"
    "  --cache STATE         before each trial: flush (default) walks more memory than the caches hold,\n"
    "                        evict takes the lines of both buffers out of them, warm leaves them\n"
    "  --flush-bytes N|auto  bytes that each rank touches to flush the caches (default: auto)\n"
    "  --settle S            work before the first case until no processor speeds up, for S seconds at\n"
    "                        most: those that were idle are slow at first; and call what is measured\n"
    "                        before its first trial, for the library to settle (default: 0)\n"
    "  --relative-error X    stop a case early once the standard error of its headline is at most\n"
    "                        X times the headline (after 10 trials or more)\n"
    "  --back-to-back N      N untimed calls, then one synchronisation between two trials and nothing\n"
    "                        else; data is verified before and after all of them: as in OSU and IMB\n"
    "  --seed N              seed of the order of cases and of the data (default: from the clock)\n"
    "  --device KIND         the kind of GPU: cuda (default) or rocm\n"
    "  --devices LIST        numbers of the GPUs of the ranks of a host, in turn (default: 0,1,2,...)\n"
    "  --memory-limit BYTES  refuse sizes that need more than this on a rank\n"
    "  --output FILE         write JSON Lines to FILE\n"
    "  --token TEXT          put TEXT into the records, so that they are known to be of this launch\n"
    "  --list                print the cases, one `routine peer bytes` per line\n"
    "  --version             print the version, the hash of the sources and the MPI library\n"
    "  --help                print this\n\n"
    "exit codes: 0 all well; 1 wrong data received; 2 wrong use, or a size that does not fit;\n"
    "            3 results cannot be written; 4 no trial of a case met its start window\n";

typedef bool setter(struct options *options, const char *value);

static bool set_routine(struct options *options, const char *value)
{
    options->routines = value;
    return true;
}

static bool set_family(struct options *options, const char *value)
{
    options->family_given = true;
    options->family = family_find(value);
    return options->family != NULL;
}

static bool set_bytes(struct options *options, const char *value)
{
    options->bytes = value;
    return true;
}

static bool set_peers(struct options *options, const char *value)
{
    options->peers = value;
    return true;
}

static bool set_trials(struct options *options, const char *value)
{
    uint64_t trials;
    if (!number_parse(value, &trials) || trials < TRIALS_LEAST || trials > TRIALS_MOST)
        return false;
    options->trials = (size_t)trials;
    return true;
}

static bool set_rounds(struct options *options, const char *value)
{
    uint64_t rounds;
    if (!number_parse(value, &rounds) || rounds < 1 || rounds > ROUNDS_MOST)
        return false;
    options->rounds = (size_t)rounds;
    return true;
}

static bool set_sync(struct options *options, const char *value)
{
    for (int kind = SYNC_DISSEMINATION; kind <= SYNC_LOOP; kind++)
        if (strcmp(value, sync_names[kind]) == 0) {
            options->sync = (enum sync_kind)kind;
            return true;
        }
    return false;
}

static bool set_cache(struct options *options, const char *value)
{
    for (int state = CACHE_FLUSH; state <= CACHE_WARM; state++)
        if (strcmp(value, cache_names[state]) == 0) {
            options->cache = (enum cache_state)state;
            return true;
        }
    return false;
}

static bool set_flush_bytes(struct options *options, const char *value)
{
    options->flush_bytes = 0;
    return strcmp(value, "auto") == 0 ||
           (number_parse(value, &options->flush_bytes) && options->flush_bytes > 0);
}

static bool set_settle(struct options *options, const char *value)
{
    char *end;
    options->settle = strtod(value, &end);
    return end != value && *end == '\0' && options->settle >= 0 && options->settle <= SETTLE_MOST;
}

static bool set_loop_seconds(struct options *options, const char *value)
{
    char *end;
    options->loop_seconds = strtod(value, &end);
    return end != value && *end == '\0' && options->loop_seconds > 0 && options->loop_seconds <= LOOP_MOST;
}

static bool set_relative_error(struct options *options, const char *value)
{
    char *end;
    options->relative_error = strtod(value, &end);
    return end != value && *end == '\0' && options->relative_error > 0 && options->relative_error < 1;
}

static bool set_back_to_back(struct options *options, const char *value)
{
    uint64_t calls;
    options->back_to_back = number_parse(value, &calls) && calls <= TRIALS_MOST;
    options->warm_up = options->back_to_back ? (size_t)calls : 0;
    return options->back_to_back;
}

static bool set_seed(struct options *options, const char *value)
{
    options->seed_given = true;
    return number_parse(value, &options->seed);
}

static bool set_device(struct options *options, const char *value)
{
    options->device = value;
    return strcmp(value, "cuda") == 0 || strcmp(value, "rocm") == 0;
}

static bool set_devices(struct options *options, const char *value)
{
    options->devices = value;
    return true;
}

static bool set_memory_limit(struct options *options, const char *value)
{
    return number_parse(value, &options->memory_limit) && options->memory_limit > 0;
}

static bool set_output(struct options *options, const char *value)
{
    options->output = value;
    return *value != '\0';
}

static bool set_token(struct options *options, const char *value)
{
    options->token = value;
    return *value != '\0';
}

static const struct valued_option {
    const char *name;
    setter *set;
    const char *expected;
} valued_options[] = {
    {"--routine", set_routine, "names of routines"},
    {"--family", set_family, "luecke, luecke2001, luecke2003, gpu, compositions, swaps, sends or kernels"},
    {"--bytes", set_bytes, "sizes in bytes"},
    {"--peers", set_peers, "ranks or rounds"},
    {"--trials", set_trials, "a whole number from 2 to 1000000"},
    {"--rounds", set_rounds, "a whole number from 1 to 1000"},
    {"--sync", set_sync, "dissemination, barrier, window or loop"},
    {"--loop-seconds", set_loop_seconds, "a number of seconds above 0, up to 10"},
    {"--cache", set_cache, "flush, evict or warm"},
    {"--flush-bytes", set_flush_bytes, "auto or a positive number of bytes"},
    {"--settle", set_settle, "a number of seconds up to 60"},
    {"--relative-error", set_relative_error, "a number between 0 and 1"},
    {"--back-to-back", set_back_to_back, "a whole number up to 1000000"},
    {"--seed", set_seed, "a whole number"},
    {"--device", set_device, "cuda or rocm"},
    {"--devices", set_devices, "numbers of GPUs"},
    {"--memory-limit", set_memory_limit, "a positive number of bytes"},
    {"--output", set_output, "the name of a file"},
    {"--token", set_token, "a text"},
};

static const struct {
    const char *name;
    enum action action;
} actions[] = {{"--list", ACTION_LIST}, {"--version", ACTION_VERSION}, {"--help", ACTION_HELP}};

static const struct valued_option *find_valued(const char *argument, size_t length)
{
    for (size_t i = 0; i < sizeof valued_options / sizeof valued_options[0]; i++)
        if (strlen(valued_options[i].name) == length &&
            strncmp(valued_options[i].name, argument, length) == 0)
            return &valued_options[i];
    return NULL;
}

static bool take_action(struct options *options, const char *argument)
{
    for (size_t i = 0; i < sizeof actions / sizeof actions[0]; i++)
        if (strcmp(actions[i].name, argument) == 0) {
            options->action = actions[i].action;
            return true;
        }
    return false;
}

static bool check_together(const struct options *options, struct outcome *outcome)
{
    if (options->routines != NULL && options->family_given)
        return outcome_fail(outcome, EXIT_USAGE, "--routine and --family: give one of them");
    if (options->cache != CACHE_FLUSH && options->flush_bytes > 0)
        return outcome_fail(outcome, EXIT_USAGE, "--flush-bytes: only --cache flush walks memory, not --cache %s",
                            cache_names[options->cache]);
    if (options->back_to_back && (options->cache != CACHE_WARM || options->sync == SYNC_WINDOW))
        return outcome_fail(outcome, EXIT_USAGE,
                            "--back-to-back: needs --cache warm, and no --sync window: both take time between trials");
    if (options->sync == SYNC_LOOP && (options->cache != CACHE_WARM || options->back_to_back))
        return outcome_fail(outcome, EXIT_USAGE, "--sync loop: needs --cache warm, since only the first of its calls "
                                                 "would be cold, and no --back-to-back");
    if (options->sync != SYNC_LOOP && options->loop_seconds > 0)
        return outcome_fail(outcome, EXIT_USAGE, "--loop-seconds: is of --sync loop only");
    return true;
}

/* Takes the option at argv[*i], written `--name value` or `--name=value`, and moves *i to its end. */
static bool take(struct options *options, int argc, char **argv, int *i, struct outcome *outcome)
{
    const char *argument = argv[*i];
    if (take_action(options, argument))
        return true;
    size_t length = strcspn(argument, "=");
    const struct valued_option *option = find_valued(argument, length);
    if (option == NULL)
        return outcome_fail(outcome, EXIT_USAGE, "%s: no such option; see mpicost --help", argument);
    bool attached = argument[length] == '=';
    if (!attached && *i + 1 == argc)
        return outcome_fail(outcome, EXIT_USAGE, "%s: needs %s", option->name, option->expected);
    const char *value = attached ? argument + length + 1 : argv[++*i];
    if (!option->set(options, value))
        return outcome_fail(outcome, EXIT_USAGE, "%s %s: must be %s", option->name, value,
                            option->expected);
    return true;
}

/* Rounds that there are trials for. One where trials must follow each other: to stop early, and back to back. */
static size_t possible_rounds(const struct options *options)
{
    size_t most = options->trials / VISIT_LEAST;
    if (options->relative_error > 0 || options->back_to_back)
        return 1;
    return options->rounds < most ? options->rounds : most;
}

bool options_parse(struct options *options, int argc, char **argv, struct outcome *outcome)
{
    *options = (struct options){.family = families, .trials = TRIALS_DEFAULT, .rounds = ROUNDS_DEFAULT, .cache = CACHE_FLUSH, .device = "cuda", .token = ""};
    for (int i = 1; i < argc; i++)
        if (!take(options, argc, argv, &i, outcome))
            return false;
    if (!check_together(options, outcome))
        return false;
    if (options->sync == SYNC_LOOP && options->loop_seconds == 0)
        options->loop_seconds = LOOP_SECONDS;
    options->rounds = possible_rounds(options);
    return true;
}

int64_t options_fingerprint(int argc, char **argv)
{
    uint64_t hash = 14695981039346656037u; /* FNV-1a, 64 bits */
    for (int i = 1; i < argc; i++)
        for (const char *c = argv[i];; c++) {
            hash = (hash ^ (unsigned char)*c) * 1099511628211u;
            if (*c == '\0')
                break;
        }
    return (int64_t)(hash >> 1);
}
