#include "table.h"

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#include "build.h"

static double microseconds(double time)
{
    return time * 1e6;
}

/* A routine of several sizes has its items one after the other. */
static void name_those_without_peers(const struct plan *plan)
{
    const struct routine *last = NULL;
    for (size_t i = 0; i < plan->item_count; i++) {
        const struct routine *routine = plan->items[i].routine;
        if (routine->pairing != PAIRING_NONE && routine != last)
            printf("# %s: no case, because a single process has no peer\n", routine->name);
        last = routine;
    }
}

/* Width of the first column: of the longest name. */
static int name_width = 0;

static void measure_names(const struct plan *plan)
{
    name_width = 15;
    for (size_t i = 0; i < plan->item_count; i++) {
        int length = (int)strlen(plan->items[i].name);
        name_width = length > name_width ? length : name_width;
    }
}

static void print_cooling(const struct bench *bench)
{
    if (bench->options->cache == CACHE_FLUSH)
        printf("caches flushed with %zu bytes a rank", bench->cooling.flush.bytes);
    else if (bench->options->cache == CACHE_EVICT)
        printf("buffers evicted by %s", bench->cooling.eviction.instruction);
    else
        printf("warm caches");
    if (bench->options->cache != CACHE_WARM)
        printf(" (a block is read %.1f times as slowly)", bench->coldness.ratio);
}

void table_head(const struct bench *bench, const struct plan *plan)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING];
    int length;
    MPI_Get_library_version(library, &length);
    library[strcspn(library, "\r\n")] = '\0';
    const struct options *options = bench->options;
    int processes = bench->world->control.size;
    printf("# mpicost %s (%s), %s\n", build_version, build_source_hash, library);
    printf("# %d processes on %d hosts; %s synchronisation; ", processes, bench->world->hosts,
           sync_names[options->sync]);
    print_cooling(bench);
    printf("; %zu trials", options->trials);
    if (options->rounds > 1)
        printf(" in %zu rounds", options->rounds);
    putchar('\n');
    if (options->sync == SYNC_LOOP)
        printf("# Pipelined: a trial is as many calls, one right after the other, as last %g s; times are their means.\n",
               options->loop_seconds);
    if (processes == 1)
        name_those_without_peers(plan);
    printf("# Times in microseconds. Scaled: headline by log2 p or p - 1, as the paper's model of the routine "
           "says.\n");
    measure_names(plan);
    printf("# %-*s %5s %9s %12s %12s %12s %12s %12s %8s  %s\n", name_width - 2, "Routine", "Peer", "Bytes", "Headline", "Median",
           "Minimum", "P99", "Scaled", "Removed", "Notes");
    fflush(stdout);
}

void table_row(const struct item *item, int peer, int processes, const struct measurement *measurement)
{
    const struct summary *summary = &measurement->summary;
    printf("%-*s %5d %9llu", name_width, item->name, peer, (unsigned long long)item->bytes);
    if (measurement->measured)
        printf(" %12.3f %12.3f %12.3f %12.3f %12.3f %8zu ", microseconds(summary->headline),
               microseconds(summary->median), microseconds(summary->minimum), microseconds(summary->p99),
               microseconds(summary->headline / routine_divisor(item->routine, processes)), summary->removed);
    if (!measurement->measured)
        printf("  every trial missed its start window");
    else if (summary->filter_saturated)
        printf(" saturated");
    if (measurement->measured && summary->bimodal)
        printf(" bimodal");
    if (measurement->wrong.rank >= 0)
        printf(" WRONG DATA");
    putchar('\n');
    fflush(stdout);
}
