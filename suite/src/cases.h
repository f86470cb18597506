/* What is kept of each case between its visits, on rank 0; the others are told of the one at hand. */
#ifndef MPICOST_CASES_H
#define MPICOST_CASES_H

#include "measurement.h"
#include "memory.h"

struct cases {
    struct measurement *list; /* [count], or one on ranks other than 0 */
    size_t bytes;
};

/* Bytes that cases_open will allocate. */
size_t cases_needed(size_t count, size_t rounds);

/* False if there is no memory. */
bool cases_open(struct cases *cases, struct memory *memory, size_t count, size_t rounds);
void cases_close(struct cases *cases, struct memory *memory);

#endif
