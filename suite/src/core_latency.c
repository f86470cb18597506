#include "core_latency.h"

#include <fcntl.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "clock.h"

enum {
    APART = 256,      /* bytes between two words, which share no line, nor two lines that are fetched together */
    TRIPS = 32,       /* there and back, of a burst */
    BURSTS = 9,       /* of which the fastest counts: in it both ranks ran all the time */
    PATIENCE = 1000000, /* ns, after which a neighbour that does not run is waited for no longer */
    LOOKS = 1000,     /* at a word, between two at the clock */
};

struct core_words {
    alignas(APART) _Atomic int64_t asked;    /* number of the trip, written by the first rank */
    alignas(APART) _Atomic int64_t answered; /* by the second */
};

/* Whether MPICOST_CORE_LATENCY=off stands in the environment of rank 0. */
static bool is_off(const struct control *control)
{
    const char *word = getenv("MPICOST_CORE_LATENCY");
    int64_t off = word != NULL && strcmp(word, "off") == 0;
    control_broadcast(control, &off, 1);
    return off != 0;
}

/* Shared memory by its name; -1 if the host has none to give. */
static int open_shared(const char *name, bool create, size_t bytes)
{
    int file = shm_open(name, O_RDWR | (create ? O_CREAT | O_EXCL : 0), 0600);
    if (file >= 0 && create && ftruncate(file, (off_t)bytes) != 0) {
        close(file);
        file = -1;
    }
    return file;
}

/* Memory that all ranks of the host map; NULL if one of them cannot. Its name is gone when this returns. */
static void *map_shared(const struct control *host, size_t bytes)
{
    char name[64];
    int64_t owner = (int64_t)getpid();
    control_broadcast(host, &owner, 1);
    snprintf(name, sizeof name, "/mpicost-%lld", (long long)owner);
    int file = host->rank == 0 ? open_shared(name, true, bytes) : -1;
    control_barrier(host);
    if (host->rank > 0)
        file = open_shared(name, false, bytes);
    void *mapped = file < 0 ? MAP_FAILED : mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    bool all = control_all_minimum(host, mapped != MAP_FAILED) > 0;
    if (host->rank == 0 && file >= 0)
        shm_unlink(name);
    if (file >= 0)
        close(file);
    if (!all && mapped != MAP_FAILED)
        munmap(mapped, bytes);
    return all ? mapped : NULL;
}

void core_latency_open(struct core_latency *cores, const struct world *world)
{
    const struct control *host = &world->host;
    *cores = (struct core_latency){.pairs = (size_t)host->size / 2, .first = host->rank % 2 == 0};
    if (world->per_node < 2 || world_is_simulated() || is_off(&world->control))
        return;
    size_t pair = (size_t)host->rank / 2;
    if (cores->pairs > 0)
        cores->host = map_shared(host, cores->pairs * sizeof *cores->host);
    if (cores->host != NULL && pair < cores->pairs)
        cores->pair = &cores->host[pair];
    cores->anywhere = control_all_maximum(&world->control, cores->pair != NULL) > 0;
}

void core_latency_close(struct core_latency *cores)
{
    if (cores->host != NULL)
        munmap(cores->host, cores->pairs * sizeof *cores->host);
    *cores = (struct core_latency){0};
}

/* Whether a word came to this number in time. */
static bool await(_Atomic int64_t *word, int64_t number, int64_t until)
{
    for (int looks = 1; atomic_load_explicit(word, memory_order_acquire) < number; looks++)
        if (looks % LOOKS == 0 && clock_now() > until)
            return false;
    return true;
}

/* Nanoseconds of a burst; CORE_LATENCY_UNKNOWN if the neighbour did not answer in time. */
static int64_t run_burst(const struct core_latency *cores, int64_t begun)
{
    struct core_words *pair = cores->pair;
    _Atomic int64_t *mine = cores->first ? &pair->asked : &pair->answered;
    _Atomic int64_t *theirs = cores->first ? &pair->answered : &pair->asked;
    int64_t start = clock_now();
    for (int64_t trip = begun + 1; trip <= begun + TRIPS; trip++) {
        if (cores->first)
            atomic_store_explicit(mine, trip, memory_order_release);
        if (!await(theirs, trip, start + PATIENCE))
            return CORE_LATENCY_UNKNOWN;
        if (!cores->first)
            atomic_store_explicit(mine, trip, memory_order_release);
    }
    return clock_now() - start;
}

/* Nanoseconds from this rank to its neighbour: half of there and back. */
static int64_t measure_pair(const struct core_latency *cores)
{
    int64_t fastest = CORE_LATENCY_UNKNOWN;
    for (int64_t i = 0; i < BURSTS; i++) {
        int64_t took = run_burst(cores, cores->trips + i * TRIPS);
        if (took == CORE_LATENCY_UNKNOWN)
            break;
        fastest = fastest == CORE_LATENCY_UNKNOWN || took < fastest ? took : fastest;
    }
    return fastest == CORE_LATENCY_UNKNOWN ? CORE_LATENCY_UNKNOWN : fastest / (2 * TRIPS);
}

int64_t core_latency_measure(struct core_latency *cores, const struct world *world)
{
    if (!cores->anywhere)
        return CORE_LATENCY_UNKNOWN;
    control_barrier(&world->control);
    int64_t work, slowest = cores->pair != NULL ? measure_pair(cores) : CORE_LATENCY_UNKNOWN;
    cores->trips += BURSTS * TRIPS;
    control_maximum(&world->control, &slowest, &work, 1);
    return slowest;
}
