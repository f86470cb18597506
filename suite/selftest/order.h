/* What is to be delayed, as the environment says it. */
#ifndef MPICOST_ORDER_H
#define MPICOST_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind { BARRIER, BCAST, SCATTER, GATHER, ALLGATHER, ALLTOALL, REDUCE, ALLREDUCE, SCAN, SEND, RECV, SENDRECV, KINDS };

extern const char *const kind_names[KINDS];

struct order {
    double fraction;      /* of what a call takes: for so long it is drawn out */
    bool kinds[KINDS];    /* which calls */
    uint64_t least, most; /* bytes of their message, both included */
    int64_t rank;         /* on which rank; -1: on all */
    double launches;      /* share of the launches in which anything is delayed; 0: what the library itself costs */
    double calls;         /* share of the calls of a launch */
};

/* Reads PLUMBLINE_DELAY_*. False if something is wrong or missing, with the reason in one line. */
bool order_read(struct order *order, char *problem, size_t size);

#endif
