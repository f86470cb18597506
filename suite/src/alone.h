/* What a rank does alone. No MPI has a part in it, so that it tells a slow machine from a slow MPI. Every
 * rank is at it at the same time. The results depend on the data, and are verified like any other. */
#ifndef MPICOST_ALONE_H
#define MPICOST_ALONE_H

#include "routine.h"

/* A chain of multiplications, each of which needs the result of the one before, for each element: the clock
 * frequency, and time that somebody else was given. */
void alone_compute(const struct exchange *exchange);
double alone_computed(const struct pattern *pattern, const struct exchange *exchange, size_t index);

/* A copy from the send to the receive buffer: memory, or the caches if they are warm. */
void alone_copy(const struct exchange *exchange);
double alone_copied(const struct pattern *pattern, const struct exchange *exchange, size_t index);

/* A burst of clock readings for each element: a kernel that has to be asked for the time is slow to tell it. */
void alone_read_clock(const struct exchange *exchange);
double alone_clock_read(const struct pattern *pattern, const struct exchange *exchange, size_t index);

#endif
