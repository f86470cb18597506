/* What can be timed. A routine is one entry of the table in routines.c. */
#ifndef MPICOST_ROUTINE_H
#define MPICOST_ROUTINE_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "memory.h"
#include "pattern.h"

/* What becomes of the payload. COMBINE_ALONE: the rank itself computes with it, and calls no MPI. */
enum combine { COMBINE_NOTHING, COMBINE_ALONE, COMBINE_SUM, COMBINE_MIN, COMBINE_MAX };
enum scaling { SCALING_NONE, SCALING_LOG2, SCALING_LINEAR };

/* Who exchanges messages with whom. The first two play ping-pong: a trial is a round trip, halved, and there is a
 * case for each `peer` from 1 on. */
enum pairing {
    PAIRING_NONE,
    PAIRING_ROOT, /* rank 0 with rank `peer`; the others do nothing */
    PAIRING_ROUND, /* all ranks at the same time, as round `peer` of a tournament has them */
    /* Ranks that send and receive at the same time, in one case for all of them: the experiments of COMMTEST. A
     * trial is not halved, and ranks without a partner wait quietly. */
    PAIRING_FIRST, /* ranks 0 and 1 */
    PAIRING_NEXT,  /* i and i + 1, of even i */
    PAIRING_HALF,  /* i and i + p / 2 */
    PAIRING_RING   /* to i + 1, from i - 1 */
};

/* How many elements each rank has of a vector, and where they begin: arguments of MPI_Gatherv and its kind. */
struct blocks {
    const int *counts, *offsets;
};

/* One case as one rank sees it: the arguments of the timed call. */
struct exchange {
    void (*operation)(const struct exchange *exchange);
    double *send;
    double *receive;
    double *filled;  /* where the data to send is made: `send`, or memory of the host that is copied to it */
    double *checked; /* where received data is looked at: `receive`, or memory of the host */
    enum memory_kind send_kind, receive_kind;
    const struct device *device; /* that has what is not the host's */
    struct image *image;         /* of what must be received */
    MPI_Comm comm;
    MPI_Comm meets; /* on which the ranks of a pair meet before they are timed: none of the measured calls */
    MPI_Datatype type; /* MPI_DOUBLE; MPI_BYTE where `bytes` is no multiple of 8 */
    MPI_Op op;
    int count; /* elements of a block */
    int rank;
    int processes;
    int partner; /* the rank that this rank plays with, or receives from; or -1 */
    int target;  /* the rank that it sends to */
    size_t calls; /* that follow each other on the same buffers before they are verified */
    bool parks;  /* whether ranks without a partner wait quietly until the others are done */
    MPI_Request *requests; /* two, for persistent requests */
    struct blocks equal;  /* `count` elements of each rank */
    struct blocks split;  /* `count` elements shared out among all ranks */
    struct blocks single; /* `count` elements of rank 0, none of the others */
};

/* Brings ranks together that the synchroniser released one after the other. Not timed. */
typedef void meeting(const struct exchange *exchange);

struct kernel;
struct device;
struct image;

struct routine {
    const char *name;
    const char *convention; /* what `bytes` counts */
    const char *sizes;      /* bytes unless others are asked for; "0": no payload */
    /* Elements in this rank's send and in its receive buffer. ELEMENTS_MOST: more than MPI can be told */
    uint64_t (*sends)(const struct exchange *exchange);
    uint64_t (*receives)(const struct exchange *exchange);
    void (*operation)(const struct exchange *exchange); /* what is timed */
    /* what element `index` of the receive buffer must be afterwards */
    double (*expected)(const struct pattern *pattern, const struct exchange *exchange, size_t index);
    enum combine combine;
    enum scaling scaling; /* the paper's model of how the time grows with the processes */
    enum pairing pairing;
    const struct kernel *kernel; /* of an application kernel, which makes and verifies its data itself; else NULL */
};

#define ELEMENTS_MOST UINT64_MAX

extern const struct routine routines[];
extern const size_t routine_count;

const struct routine *routine_find(const char *name);

/* Whether the payload is made of numbers, so that `bytes` must be a multiple of their size. */
bool routine_computes(const struct routine *routine);

/* Bytes of an element. */
size_t element_size(const struct exchange *exchange);

/* Where the part of a rank begins in a vector of `count` elements that is shared out as evenly as can be. */
int part_offset(const struct exchange *exchange, int rank);

/* Number of peers that a routine played in pairs has a case for; 0 for the others. */
int routine_peers(const struct routine *routine, int processes);

/* Whether there is a case for each peer. */
bool routine_has_peers(const struct routine *routine);

/* Whether some ranks swap messages, and the others wait quietly. */
bool routine_swaps(const struct routine *routine);

/* The rank that `rank` sends to, of one that swaps; or -1. */
int routine_target(const struct routine *routine, int processes, int rank);

/* The rank that `rank` plays with in the case of that peer, or -1. */
int routine_partner(const struct routine *routine, int processes, int peer, int rank);

/* Messages one after the other in a trial, by which its time is divided. */
int routine_legs(const struct routine *routine);

/* Whether this rank does any work in the case, so that its times count. */
bool routine_takes_part(const struct routine *routine, const struct exchange *exchange);

/* Whether no rank may leave the call before each has come: it has no payload to be verified. */
bool routine_is_barrier(const struct routine *routine);

/* What the ranks do after the synchronisation, before the first stamp: the two of a pair meet, so that neither waits
 * in its timed call for the other, who may have left the barrier later; those who swap begin at the same time. NULL
 * for all other routines. */
meeting *routine_meeting(const struct routine *routine);

/* What the paper divides a time by to see whether it scales: 1, log2 p or p - 1. */
double routine_divisor(const struct routine *routine, int processes);

MPI_Op combine_op(enum combine combine);

#endif
