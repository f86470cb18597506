#include "plan.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "splitmix.h"

enum { PROCESSES_MOST = 1 << 20, WORD = 64 };

/* Where the buffers of a case lie: HERE where nothing is said, else 1 + MEMORY_KINDS * that of the send buffer + that of
 * the receive buffer. */
enum { HERE = 0, MEMORIES = 1 + MEMORY_KINDS * MEMORY_KINDS };

static const char letters[] = "HDM"; /* indexed by enum memory_kind */

static size_t list_length(const char *list)
{
    size_t length = 1;
    for (; *list != '\0'; list++)
        length += *list == ',' || *list == ':';
    return length;
}

/* Entries between commas, each perhaps with sizes behind it. */
static size_t entry_count(const char *list)
{
    size_t count = 1;
    while ((list = strchr(list, ',')) != NULL) {
        count++;
        list++;
    }
    return count;
}

/* The sizes at which a routine is timed, what separates them, and the option they come from. */
struct sizes {
    const char *list;
    char separator;
    const char *option;
};

bool plan_has_kernels(const struct plan *plan)
{
    bool any = false;
    for (size_t i = 0; i < plan->item_count; i++)
        any = any || plan->items[i].routine->kernel != NULL;
    return any;
}

bool plan_is_placed(const struct plan *plan)
{
    return plan->item_count > 0 && plan->items[0].placed;
}

static bool check_size(const char *text, const struct routine *routine, const char *option, uint64_t *bytes,
                       struct outcome *outcome)
{
    if (!number_parse(text, bytes))
        return outcome_fail(outcome, EXIT_USAGE, "%s: '%s' is not a size in bytes", option, text);
    if (routine->kernel != NULL && strcmp(text, routine->sizes) != 0)
        return outcome_fail(outcome, EXIT_USAGE, "%s: %s has the %s bytes of its definition, not %s", option,
                            routine->name, routine->sizes, text);
    bool numbers = *bytes % sizeof(double) == 0;
    if (!numbers && routine_computes(routine))
        return outcome_fail(outcome, EXIT_USAGE, "%s: %s is not a multiple of 8, the size of the numbers of %s",
                            option, text, routine->name);
    if ((numbers ? *bytes / sizeof(double) : *bytes) > INT_MAX)
        return outcome_fail(outcome, EXIT_USAGE,
                            "%s: %s is more than the %d elements that a call of MPI can take", option, text,
                            INT_MAX);
    return true;
}

/* Whether it has buffers, and nobody but the MPI touches them between two verifications. */
static bool is_for_any_memory(const struct routine *routine)
{
    static const char *const measured[] = {"luecke", "swaps", "sends"};
    bool any = false;
    for (size_t i = 0; i < sizeof measured / sizeof measured[0]; i++)
        any = any || family_has(family_find(measured[i]), routine->name);
    return any && !routine_is_barrier(routine);
}

static bool add_item(struct plan *plan, const struct routine *routine, size_t memory, const char *text,
                     const char *option, struct outcome *outcome)
{
    struct item item = {.routine = routine, .placed = memory != HERE};
    if (!check_size(text, routine, option, &item.bytes, outcome))
        return false;
    if (item.placed) {
        item.send = (enum memory_kind)((memory - 1) / MEMORY_KINDS);
        item.receive = (enum memory_kind)((memory - 1) % MEMORY_KINDS);
    }
    if (item.placed)
        snprintf(item.name, sizeof item.name, "%s.%c%c", routine->name, letters[item.send], letters[item.receive]);
    else
        snprintf(item.name, sizeof item.name, "%s", routine->name);
    for (size_t i = 0; i < plan->item_count; i++)
        if (strcmp(plan->items[i].name, item.name) == 0 && plan->items[i].bytes == item.bytes)
            return outcome_fail(outcome, EXIT_USAGE, "%s: %s is there twice", option, text);
    plan->items[plan->item_count++] = item;
    return true;
}

/* A routine without payload keeps its one size whatever sizes are asked for. */
static struct sizes sizes_of(const struct routine *routine, const struct options *options)
{
    bool replaced = options->bytes != NULL && !routine_is_barrier(routine);
    return (struct sizes){replaced ? options->bytes : routine->sizes, ',', "--bytes"};
}

static bool add_items(struct plan *plan, const struct routine *routine, size_t memory, struct sizes sizes,
                      struct outcome *outcome)
{
    char text[WORD];
    for (const char *rest = sizes.list; list_next(&rest, sizes.separator, text, sizeof text);)
        if (!add_item(plan, routine, memory, text, sizes.option, outcome))
            return false;
    return true;
}

/* The sizes that follow the name of a routine, as in `bcast:8:10000`; else those of `sizes_of`, which also
 * stand in place of a family's. */
static bool own_sizes(struct sizes *sizes, const struct routine *routine, const char *entry,
                      const struct options *options, struct outcome *outcome)
{
    bool named = options->routines != NULL;
    *sizes = sizes_of(routine, options);
    const char *end = entry + strcspn(entry, ":,");
    if (*end != ':' || (options->bytes != NULL && !named))
        return true;
    if (options->bytes != NULL)
        return outcome_fail(outcome, EXIT_USAGE, "--bytes: %s has sizes of its own in --routine",
                            routine->name);
    if (routine_is_barrier(routine))
        return outcome_fail(outcome, EXIT_USAGE, "--routine: %s has no payload, so no sizes", routine->name);
    *sizes = (struct sizes){end + 1, ':', "--routine"};
    return true;
}

static const char *routines_asked_for(const struct options *options)
{
    return options->routines != NULL ? options->routines : options->family->routines;
}

/* The routine of a name such as `bcast`, or `bcast.DH` with the memory of its buffers. NULL if there is none. */
static const struct routine *find_placed(const char *name, size_t *memory)
{
    const char *dot = strchr(name, '.');
    char plain[WORD] = "";
    *memory = HERE;
    if (dot == NULL)
        return routine_find(name);
    memcpy(plain, name, (size_t)(dot - name));
    const char *send = dot[1] != '\0' ? strchr(letters, dot[1]) : NULL;
    const char *receive = send != NULL && dot[2] != '\0' ? strchr(letters, dot[2]) : NULL;
    const struct routine *routine = routine_find(plain);
    if (receive == NULL || dot[3] != '\0' || routine == NULL || !is_for_any_memory(routine))
        return NULL;
    *memory = 1 + MEMORY_KINDS * (size_t)(send - letters) + (size_t)(receive - letters);
    return routine;
}

/* Fills in the sizes of the routines that are asked for, in `chosen`. */
static bool choose_routines(struct sizes *chosen, const struct options *options, struct outcome *outcome)
{
    const char *rest = routines_asked_for(options);
    while (rest != NULL) {
        const char *entry = rest, *names = rest;
        char name[WORD];
        size_t memory;
        list_next(&names, ':', name, sizeof name);
        const struct routine *routine = find_placed(name, &memory);
        if (routine == NULL)
            return outcome_fail(outcome, EXIT_USAGE, "--routine: no routine '%s'", name);
        struct sizes *sizes = &chosen[MEMORIES * (size_t)(routine - routines) + memory];
        if (sizes->list != NULL)
            return outcome_fail(outcome, EXIT_USAGE, "--routine: %s is there twice", name);
        if (!own_sizes(sizes, routine, entry, options, outcome))
            return false;
        rest = strchr(rest, ',');
        rest = rest != NULL ? rest + 1 : NULL;
    }
    return true;
}

/* Kernels are timed one whole run after the other, and in a launch of their own. */
static bool check_kernels(const struct plan *plan, const struct options *options, struct outcome *outcome)
{
    if (!plan_has_kernels(plan))
        return true;
    for (size_t i = 0; i < plan->item_count; i++)
        if (plan->items[i].routine->kernel == NULL)
            return outcome_fail(outcome, EXIT_USAGE, "--routine: %s is no kernel, and kernels are measured by themselves",
                                plan->items[i].routine->name);
    if (options->rounds > 1 || options->back_to_back || options->sync == SYNC_LOOP)
        return outcome_fail(outcome, EXIT_USAGE, "%s: kernels are measured with --rounds 1, one run after the other, "
                                                 "without --back-to-back and --sync loop", plan->items[0].routine->name);
    return true;
}

/* Cases that say where their buffers lie are measured by themselves, and compare with no others. */
static bool check_placed(const struct plan *plan, const struct options *options, struct outcome *outcome)
{
    for (size_t i = 0; i < plan->item_count; i++)
        if (plan->items[i].placed != plan->items[0].placed)
            return outcome_fail(outcome, EXIT_USAGE, "--routine: %s says where its buffers lie, and %s does not",
                                plan->items[plan->items[i].placed ? i : 0].name,
                                plan->items[plan->items[i].placed ? 0 : i].name);
    if (plan_is_placed(plan) && options->cache != CACHE_WARM)
        return outcome_fail(outcome, EXIT_USAGE, "%s: needs --cache warm: nothing cools the caches of a GPU",
                            plan->items[0].name);
    return plan_is_placed(plan) || options->devices == NULL ||
           outcome_fail(outcome, EXIT_USAGE, "--devices: no case has buffers on a GPU");
}

static bool plan_items(struct plan *plan, const struct options *options, struct sizes *chosen,
                       struct outcome *outcome)
{
    if (!choose_routines(chosen, options, outcome))
        return false;
    for (size_t i = 0; i < routine_count; i++)
        for (size_t memory = 0; memory < MEMORIES; memory++)
            if (!add_items(plan, &routines[i], memory, chosen[MEMORIES * i + memory], outcome))
                return false;
    return check_kernels(plan, options, outcome) && check_placed(plan, options, outcome);
}

static int compare(const void *left, const void *right)
{
    int a = *(const int *)left, b = *(const int *)right;
    return (a > b) - (a < b);
}

/* The routine among the items that is played in pairs and has the fewest peers; NULL if none is. */
static const struct routine *fewest_peers(const struct plan *plan, int processes)
{
    const struct routine *fewest = NULL;
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct routine *routine = plan->items[i].routine;
        if (routine_has_peers(routine) &&
            (fewest == NULL || routine_peers(routine, processes) < routine_peers(fewest, processes)))
            fewest = routine;
    }
    return fewest;
}

static bool check_peer(const char *text, const struct routine *routine, int processes, uint64_t *peer,
                       struct outcome *outcome)
{
    if (number_parse(text, peer) && *peer > 0 && *peer <= (uint64_t)routine_peers(routine, processes))
        return true;
    return outcome_fail(outcome, EXIT_USAGE, "--peers: %s with %d processes has no peer '%s'", routine->name,
                        processes, text);
}

/* Reads the peers, which all routines that are played in pairs must have, in ascending order. */
static bool parse_peers(int *peers, size_t count, const char *list, const struct routine *fewest,
                        int processes, struct outcome *outcome)
{
    char text[WORD];
    const char *rest = list;
    for (size_t i = 0; i < count && list_next(&rest, ',', text, sizeof text); i++) {
        uint64_t peer;
        if (!check_peer(text, fewest, processes, &peer, outcome))
            return false;
        peers[i] = (int)peer;
    }
    qsort(peers, count, sizeof *peers, compare);
    for (size_t i = 1; i < count; i++)
        if (peers[i] == peers[i - 1])
            return outcome_fail(outcome, EXIT_USAGE, "--peers: %d is there twice", peers[i]);
    return true;
}

/* Peers that the user names; 0 for all. */
static size_t peers_chosen(const struct options *options)
{
    return options->peers != NULL ? list_length(options->peers) : 0;
}

/* Cases of a routine at one size. `chosen`: how many peers the user names; 0 for all. */
static size_t visits_of(const struct routine *routine, size_t chosen, int processes)
{
    if (!routine_has_peers(routine))
        return routine_swaps(routine) && processes < 2 ? 0 : 1;
    return chosen > 0 ? chosen : (size_t)routine_peers(routine, processes);
}

static size_t count_visits(const struct plan *plan, size_t chosen, int processes)
{
    size_t visits = 0;
    for (size_t item = 0; item < plan->item_count; item++)
        visits += visits_of(plan->items[item].routine, chosen, processes);
    return visits;
}

/* Cases that are rounds of a tournament. */
static size_t count_played(const struct plan *plan, size_t chosen, int processes)
{
    size_t played = 0;
    for (size_t item = 0; item < plan->item_count; item++)
        if (plan->items[item].routine->pairing == PAIRING_ROUND)
            played += visits_of(plan->items[item].routine, chosen, processes);
    return played;
}

/* Cases in the order of the items. */
static void list_visits(struct plan *plan, const int *peers, size_t chosen, int processes)
{
    size_t played = 0;
    for (size_t item = 0; item < plan->item_count; item++) {
        const struct routine *routine = plan->items[item].routine;
        for (size_t i = 0; i < visits_of(routine, chosen, processes); i++) {
            int peer = !routine_has_peers(routine) ? 0 : chosen > 0 ? peers[i] : (int)i + 1;
            size_t number = routine->pairing == PAIRING_ROUND ? ++played : 0;
            plan->visits[plan->visit_count++] = (struct visit){item, peer, 0, number};
        }
    }
}

static bool plan_visits(struct plan *plan, struct memory *memory, const struct options *options,
                        int processes, struct outcome *outcome)
{
    const struct routine *fewest = fewest_peers(plan, processes);
    if (options->peers != NULL && fewest == NULL)
        return outcome_fail(outcome, EXIT_USAGE, "--peers: none of the routines is played in pairs");
    size_t chosen = peers_chosen(options);
    size_t visits = count_visits(plan, chosen, processes);
    if (visits == 0)
        return outcome_fail(outcome, EXIT_USAGE, "no case to run: %s needs 2 processes",
                            plan->items[0].routine->name);
    plan->visit_bytes = visits * sizeof *plan->visits;
    plan->visits = memory_allocate(memory, plan->visit_bytes);
    size_t peer_bytes = chosen * sizeof(int);
    int *peers = chosen > 0 ? memory_allocate(memory, peer_bytes) : NULL;
    if (plan->visits == NULL || (chosen > 0 && peers == NULL))
        return outcome_fail(outcome, EXIT_USAGE, "no memory for a list of %zu cases", visits);
    bool well = peers == NULL || parse_peers(peers, chosen, options->peers, fewest, processes, outcome);
    if (well)
        list_visits(plan, peers, chosen, processes);
    memory_free(memory, peers, peer_bytes);
    return well;
}

/* Items that the options can ask for at most. */
static size_t items_most(const struct options *options)
{
    enum { SIZES_MOST = 24 }; /* in an entry of the table */
    size_t sizes = options->bytes != NULL ? list_length(options->bytes) : 0;
    const char *asked = routines_asked_for(options);
    return entry_count(asked) * (sizes > SIZES_MOST ? sizes : SIZES_MOST) + list_length(asked);
}

bool plan_open(struct plan *plan, struct memory *memory, const struct options *options,
               const struct control *control, struct outcome *outcome)
{
    *plan = (struct plan){0};
    if (control->size > PROCESSES_MOST)
        return outcome_fail(outcome, EXIT_USAGE, "%d processes are more than %d", control->size,
                            PROCESSES_MOST);
    size_t sizes = items_most(options);
    size_t chosen_bytes = routine_count * MEMORIES * sizeof(struct sizes);
    plan->item_bytes = sizes * sizeof *plan->items;
    plan->items = memory_allocate(memory, plan->item_bytes);
    struct sizes *chosen = memory_allocate(memory, chosen_bytes);
    if (plan->items == NULL || chosen == NULL)
        return outcome_fail(outcome, EXIT_USAGE, "no memory for a list of %zu sizes", sizes);
    memset(chosen, 0, chosen_bytes);
    bool well = plan_items(plan, options, chosen, outcome);
    memory_free(memory, chosen, chosen_bytes);
    if (well)
        plan->played = count_played(plan, peers_chosen(options), control->size);
    if (!well || control->rank != 0)
        return well;
    return plan_visits(plan, memory, options, control->size, outcome);
}

void plan_close(struct plan *plan, struct memory *memory)
{
    memory_free(memory, plan->items, plan->item_bytes);
    memory_free(memory, plan->visits, plan->visit_bytes);
}

/* Fisher and Yates' shuffle. */
static void shuffle(struct plan *plan, uint64_t seed)
{
    for (size_t left = plan->visit_count; left > 1; left--) {
        size_t chosen = (size_t)(splitmix_at(seed, left) % left);
        struct visit last = plan->visits[left - 1];
        plan->visits[left - 1] = plan->visits[chosen];
        plan->visits[chosen] = last;
    }
}

void plan_shuffle(struct plan *plan, uint64_t seed, size_t round)
{
    shuffle(plan, round == 0 ? seed : splitmix_at(~seed, round));
    for (size_t i = 0; round == 0 && i < plan->visit_count; i++)
        plan->visits[i].number = i;
}
