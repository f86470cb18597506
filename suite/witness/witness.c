/* Preloaded into a benchmark that is not ours, proves what it ran on: PLUMBLINE_WITNESS names the file that receives a
 * `run` and an `end` record. PLUMBLINE_FACTS names one for what `compare` tells of an MPI (facts.h). All work is done in MPI_Finalize, when nothing is timed any more. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "caches.h"
#include "clock.h"
#include "complaint.h"
#include "core_latency.h"
#include "cpu_list.h"
#include "facts.h"
#include "foreign.h"
#include "gather.h"
#include "line.h"
#include "objects.h"
#include "origin.h"
#include "places.h"
#include "standard_abi.h"
#include "world.h"

#define EXPORTED __attribute__((visibility("default")))

static int64_t started; /* ns; 0 before MPI_Init has returned */

struct testimony {
    const char *path; /* NULL: nothing is wanted, or can be said */
    int64_t core_latency; /* ns; on rank 0: when the benchmark is over */
    int64_t elapsed;  /* ns from MPI_Init to MPI_Finalize; on rank 0, in the end: of the slowest rank */
    int arrived;      /* on rank 0: ranks that reached MPI_Finalize */
    bool well;        /* on rank 0: the run record is in the file */
};

/* The keys `program` and `command`. */
static void write_command(struct json *json)
{
    char *word = NULL;
    size_t size = 0, words = 0;
    FILE *file = fopen("/proc/self/cmdline", "r");
    while (file != NULL && getdelim(&word, &size, '\0', file) > 0) {
        if (words++ == 0) {
            const char *slash = strrchr(word, '/');
            json_key_string(json, "program", slash != NULL ? slash + 1 : word);
            json_key(json, "command");
            json_open(json, '[');
        }
        json_string(json, word);
    }
    if (words > 0)
        json_close(json, ']');
    free(word);
    if (file != NULL)
        fclose(file);
}

/* PLUMBLINE_TOKEN is of whoever starts the program, who looks for it in the records. */
static void write_token(struct json *json)
{
    const char *token = getenv("PLUMBLINE_TOKEN");
    json_key_string(json, "token", token != NULL ? token : "");
}

/* On rank 0, while the others call places_answer. */
static void write_run(struct json *json, const struct testimony *testimony, const struct world *world)
{
    struct caches caches;
    caches_read(&caches, cpu_list_first(world->cpus));
    json_open(json, '{');
    json_key_string(json, "record", "run");
    json_key_integer(json, "schema", 2);
    json_key(json, "witness");
    json_open(json, '{');
    origin_build(json);
    json_close(json, '}');
    origin_library(json);
    standard_abi_write(json);
    origin_date(json, "date_utc");
    write_token(json);
    write_command(json);
    objects_write(json);
    json_key_integer(json, "processes", world->control.size);
    json_key_integer(json, "per_node", world->per_node);
    places_write(json, world);
    if (testimony->core_latency != CORE_LATENCY_UNKNOWN)
        json_key_number(json, "core_latency", seconds(testimony->core_latency));
    origin_machine(json, &caches);
    origin_environment(json);
    json_close(json, '}');
    json_newline(json);
}

static void write_end(struct json *json, const struct testimony *testimony)
{
    json_open(json, '{');
    json_key_string(json, "record", "end");
    write_token(json);
    origin_date(json, "ended_utc");
    json_key_integer(json, "arrived", testimony->arrived);
    json_key_number(json, "elapsed", seconds(testimony->elapsed));
    json_close(json, '}');
    json_newline(json);
}

static bool append(struct line *line, const char *path)
{
    char text[512];
    if (line_append(line, path))
        return true;
    snprintf(text, sizeof text, "cannot write %s: %s", path, strerror(errno));
    complain("witness", text);
    return false;
}

/* Collective. */
static bool testify_run(const struct testimony *testimony, const struct world *world)
{
    struct line line;
    if (world->control.rank != 0) {
        places_answer(world);
        return false;
    }
    line_open(&line);
    write_run(&line.json, testimony, world);
    return append(&line, testimony->path);
}

/* Every rank says for itself that it came, and after what time; rank 0 counts those that it hears. Collective. */
static void count_arrivals(struct testimony *testimony, const struct control *control)
{
    struct gather gather;
    gather_open(&gather, control);
    if (control->rank != 0) {
        gather_put(&gather, &testimony->elapsed, sizeof testimony->elapsed);
        gather_finish(&gather);
        return;
    }
    testimony->arrived = 1;
    for (int rank = 1; rank < control->size; rank++) {
        int64_t elapsed = -1;
        gather_get(&gather, &elapsed, sizeof elapsed);
        testimony->arrived += elapsed >= 0;
        if (elapsed > testimony->elapsed)
            testimony->elapsed = elapsed;
    }
    gather_close(&gather);
}

/* From core to core, on rank 0. Collective. */
static int64_t measure_core_latency(const struct world *world)
{
    struct core_latency cores;
    core_latency_open(&cores, world);
    int64_t latency = core_latency_measure(&cores, world);
    core_latency_close(&cores);
    return latency;
}

/* Collective. */
static void testify(struct testimony *testimony)
{
    struct world world;
    world_open(&world);
    testimony->core_latency = measure_core_latency(&world);
    testimony->well = testify_run(testimony, &world);
    count_arrivals(testimony, &world.control);
    world_close(&world);
}

static void testify_end(const struct testimony *testimony)
{
    struct line line;
    line_open(&line);
    write_end(&line.json, testimony);
    append(&line, testimony->path);
}

static struct testimony prepare(void)
{
    struct testimony testimony = {.path = getenv("PLUMBLINE_WITNESS"), .elapsed = clock_now() - started};
    const char *problem = NULL;
    if (testimony.path != NULL && started == 0)
        problem = "MPI_Finalize came, and MPI_Init did not";
    else if (testimony.path != NULL && is_foreign())
        problem = "the MPI of this program has another binary interface than the one that the witness was built for";
    if (problem != NULL) {
        complain("witness", problem);
        testimony.path = NULL;
    }
    return testimony;
}

EXPORTED int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS)
        started = clock_now();
    return result;
}

EXPORTED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS)
        started = clock_now();
    return result;
}

static void tell_facts(void)
{
    int rank = -1;
    if (started == 0 || is_foreign())
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (rank == 0)
        facts_write();
}

/* The end record is written behind PMPI_Finalize: it says that this too went well. */
EXPORTED int MPI_Finalize(void)
{
    struct testimony testimony = prepare();
    tell_facts();
    if (testimony.path != NULL)
        testify(&testimony);
    int result = PMPI_Finalize();
    if (testimony.well && result == MPI_SUCCESS)
        testify_end(&testimony);
    return result;
}
