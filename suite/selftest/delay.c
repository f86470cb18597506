/* Preloaded into a benchmark, makes some of its MPI calls slower by a known amount: the self-test plants with it what
 * a night must find. A call that took t is drawn out to (1 + fraction) t, on the clock by which mpicost measures.
 *
 * Only calls on MPI_COMM_WORLD are delayed: there mpicost has its measured calls, and its synchroniser elsewhere.
 * The environment of the program is told that it is delayed, so that the record of its run tells it too. */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "complaint.h"
#include "foreign.h"
#include "line.h"
#include "order.h"
#include "splitmix.h"

#ifdef OPEN_MPI
#pragma weak ompi_mpi_byte
#endif

#define EXPORTED __attribute__((visibility("default")))
#define TOLD "PLUMBLINE_DELAY_PLANTED" /* "1" in a launch that is delayed, "0" in one that is spared */

enum { EXIT_REFUSED = 2 };

struct count {
    int64_t calls, delayed;
    int64_t took, added; /* ns, in and behind the calls that were delayed */
};

static struct order order;
static struct count counts[KINDS];
static bool active;
static int own_rank;

static int64_t now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

static _Noreturn void refuse(const char *problem)
{
    complain("delay", problem);
    _exit(EXIT_REFUSED);
}

/* Evenly: of every five calls one, with a share of 0.2. All ranks, which call alike, take the same ones. */
static bool is_due(int64_t call)
{
    return (int64_t)((double)(call + 1) * order.calls) > (int64_t)((double)call * order.calls);
}

static bool has_the_size(int count, MPI_Datatype type)
{
    int bytes = 0;
    if (order.least == 0 && order.most == UINT64_MAX)
        return true;
    if (count > 0)
        PMPI_Type_size(type, &bytes);
    uint64_t size = (uint64_t)count * (uint64_t)bytes;
    return order.least <= size && size <= order.most;
}

/* Behind a call that began at `begin`. What deciding takes is a part of the delay. */
static void draw_out(enum kind kind, MPI_Comm comm, int count, MPI_Datatype type, int64_t begin)
{
    int64_t end = now(), until = begin + (int64_t)((double)(end - begin) * (1 + order.fraction));
    if (!active || comm != MPI_COMM_WORLD || !order.kinds[kind])
        return;
    struct count *counted = &counts[kind];
    counted->calls++;
    if ((order.rank >= 0 && order.rank != own_rank) || !has_the_size(count, type) || !is_due(counted->calls - 1))
        return;
    int64_t last = now();
    while (last < until)
        last = now();
    counted->delayed++;
    counted->took += end - begin;
    counted->added += last - end;
}

#define DELAYED(kind, name, parameters, arguments, count, type) \
    EXPORTED int MPI_##name parameters                           \
    {                                                           \
        int64_t begin = now();                                  \
        int result = PMPI_##name arguments;                     \
        draw_out(kind, comm, count, type, begin);               \
        return result;                                          \
    }

DELAYED(BARRIER, Barrier, (MPI_Comm comm), (comm), 0, MPI_BYTE)
DELAYED(BCAST, Bcast, (void *data, int n, MPI_Datatype t, int root, MPI_Comm comm), (data, n, t, root, comm), n, t)
DELAYED(SCATTER, Scatter,
        (const void *out, int n, MPI_Datatype t, void *in, int m, MPI_Datatype u, int root, MPI_Comm comm),
        (out, n, t, in, m, u, root, comm), m, u)
DELAYED(GATHER, Gather,
        (const void *out, int n, MPI_Datatype t, void *in, int m, MPI_Datatype u, int root, MPI_Comm comm),
        (out, n, t, in, m, u, root, comm), n, t)
DELAYED(ALLGATHER, Allgather, (const void *out, int n, MPI_Datatype t, void *in, int m, MPI_Datatype u, MPI_Comm comm),
        (out, n, t, in, m, u, comm), n, t)
DELAYED(ALLTOALL, Alltoall, (const void *out, int n, MPI_Datatype t, void *in, int m, MPI_Datatype u, MPI_Comm comm),
        (out, n, t, in, m, u, comm), n, t)
DELAYED(REDUCE, Reduce, (const void *out, void *in, int n, MPI_Datatype t, MPI_Op op, int root, MPI_Comm comm),
        (out, in, n, t, op, root, comm), n, t)
DELAYED(ALLREDUCE, Allreduce, (const void *out, void *in, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
        (out, in, n, t, op, comm), n, t)
DELAYED(SCAN, Scan, (const void *out, void *in, int n, MPI_Datatype t, MPI_Op op, MPI_Comm comm),
        (out, in, n, t, op, comm), n, t)
DELAYED(SEND, Send, (const void *data, int n, MPI_Datatype t, int to, int tag, MPI_Comm comm),
        (data, n, t, to, tag, comm), n, t)
DELAYED(RECV, Recv, (void *data, int n, MPI_Datatype t, int from, int tag, MPI_Comm comm, MPI_Status *status),
        (data, n, t, from, tag, comm, status), n, t)
DELAYED(SENDRECV, Sendrecv,
        (const void *out, int n, MPI_Datatype t, int to, int tag, void *in, int m, MPI_Datatype u, int from,
         int tag_in, MPI_Comm comm, MPI_Status *status),
        (out, n, t, to, tag, in, m, u, from, tag_in, comm, status), n, t)

/* Rank 0 draws whether this launch is delayed. Collective. */
static bool draw_launch(void)
{
    unsigned char drawn = 0;
    uint64_t seed = (uint64_t)now() ^ (uint64_t)getpid() << 32;
    if (own_rank == 0)
        drawn = (double)(splitmix_at(seed, 0) >> 11) / 9007199254740992.0 < order.launches;
    PMPI_Bcast(&drawn, 1, MPI_BYTE, 0, MPI_COMM_WORLD);
    return drawn != 0;
}

static void check(void)
{
    char problem[160];
    if (is_foreign())
        refuse("the MPI of this program has another binary interface than the one that the library was built for");
    if (!order_read(&order, problem, sizeof problem))
        refuse(problem);
}

static void begin(int result)
{
    if (result != MPI_SUCCESS)
        return;
    PMPI_Comm_rank(MPI_COMM_WORLD, &own_rank);
    active = draw_launch();
    if (setenv(TOLD, active ? "1" : "0", 1) != 0)
        refuse("the environment cannot be told of the delays");
}

EXPORTED int MPI_Init(int *argc, char ***argv)
{
    check();
    int result = PMPI_Init(argc, argv);
    begin(result);
    return result;
}

EXPORTED int MPI_Init_thread(int *argc, char ***argv, int required, int *provided)
{
    check();
    int result = PMPI_Init_thread(argc, argv, required, provided);
    begin(result);
    return result;
}

static void write_counts(const char *path)
{
    for (int kind = 0; kind < KINDS; kind++) {
        struct line line;
        if (counts[kind].calls == 0)
            continue;
        line_open(&line);
        json_open(&line.json, '{');
        json_key_integer(&line.json, "rank", own_rank);
        json_key_string(&line.json, "function", kind_names[kind]);
        json_key_integer(&line.json, "calls", counts[kind].calls);
        json_key_integer(&line.json, "delayed", counts[kind].delayed);
        json_key_number(&line.json, "took", (double)counts[kind].took / 1e9);
        json_key_number(&line.json, "added", (double)counts[kind].added / 1e9);
        json_close(&line.json, '}');
        json_newline(&line.json);
        if (!line_append(&line, path))
            complain("delay", "cannot write to the file that PLUMBLINE_DELAY_COUNTS names");
    }
}

EXPORTED int MPI_Finalize(void)
{
    const char *path = getenv("PLUMBLINE_DELAY_COUNTS");
    if (path != NULL)
        write_counts(path);
    return PMPI_Finalize();
}
