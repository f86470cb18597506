/* Operations put together from others, which nobody should have to prefer to the operation itself: the
 * performance guidelines of Traeff, Gropp and Thakur (IEEE TPDS 21(5), 2010) and the mock-ups of PGMPI
 * (Hunold et al., EuroMPI 2016). The result is that of the operation. What is copied, is copied within the time. */
#ifndef MPICOST_COMPOSITIONS_H
#define MPICOST_COMPOSITIONS_H

#include "routine.h"

/* Elements of a share: a vector of `count` elements that is split among all ranks, rounded up. */
uint64_t share(const struct exchange *x);
uint64_t all_shares(const struct exchange *x);

/* Elements of this rank's part of a vector that is shared out without rounding up. */
uint64_t part(const struct exchange *x);

void bcast_as_allgatherv(const struct exchange *x);
void bcast_as_scatter_allgather(const struct exchange *x);
void bcast_as_sends(const struct exchange *x);
void scatter_as_bcast(const struct exchange *x);
void scatter_as_sends(const struct exchange *x);
void scatter_as_scatterv(const struct exchange *x);
void gather_as_gatherv(const struct exchange *x);
void gather_as_reduce(const struct exchange *x);
void gather_as_sends(const struct exchange *x);
void allgather_as_gather_bcast(const struct exchange *x);
void allgather_as_allgatherv(const struct exchange *x);
void allgather_as_allreduce(const struct exchange *x);
void allgather_as_alltoall(const struct exchange *x);
void alltoall_as_alltoallv(const struct exchange *x);
void alltoall_as_sendrecv(const struct exchange *x);
void reduce_as_reduce_scatter_gather(const struct exchange *x);
void reduce_as_reduce_scatter_gatherv(const struct exchange *x);
void allreduce_as_reduce_bcast(const struct exchange *x);
void allreduce_as_reduce_scatter_allgather(const struct exchange *x);
void allreduce_as_reduce_scatter_allgatherv(const struct exchange *x);
void reduce_scatter_block_as_reduce_scatter(const struct exchange *x);
void reduce_scatter_as_reduce_scatterv(const struct exchange *x);
void reduce_scatter_as_allreduce(const struct exchange *x);
void scan_as_exscan_reduce_local(const struct exchange *x);

#endif
