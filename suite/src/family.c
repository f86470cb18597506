#include "family.h"

#include <stddef.h>
#include <string.h>

/* clang-format off */
const struct family families[] = {
    /* both papers */
    {"luecke",
     "pingpong,rightshift,barrier,bcast,scatter,gather,allgather,alltoall,reduce_sum,reduce_min,reduce_max,"
     "allreduce_sum,allreduce_min,allreduce_max,scan_sum,scan_min,scan_max"},
    {"luecke2001",
     "pingpong:8:1000000,rightshift:8:10000,barrier,bcast:8:1000000,scatter:8:10000,gather:8:10000,"
     "allgather:8:10000,alltoall:8:10000,reduce_sum:8:1000000,reduce_min:8:1000000,reduce_max:8:1000000,"
     "allreduce_sum:8:1000000,allreduce_min:8:1000000,allreduce_max:8:1000000,scan_sum:8:1000000,"
     "scan_min:8:1000000,scan_max:8:1000000"},
    {"luecke2003",
     "pingpong:8:10000:1000000,rightshift:8:10000:1000000,bcast:8:10000:1000000,scatter:8:1000:100000,"
     "gather:8:1000:100000,alltoall:8:1000:100000,reduce_sum:8:10000:1000000"},
    /* buffers on a GPU, and beside them on the host: D of the GPU, M managed by its driver, H of the host */
    {"gpu",
     "pingpong.DD:8:10000:1000000,pingpong.DH:8:10000:1000000,pingpong.HD:8:10000:1000000,"
     "pingpong.MM:8:10000:1000000,pingpong.HH:8:10000:1000000,rightshift.DD:8:1000000,"
     "rightshift.HH:8:1000000,bcast.DD:8:1000000,bcast.HH:8:1000000,scatter.DD:8:100000,"
     "scatter.HH:8:100000,gather.DD:8:100000,gather.HH:8:100000,allgather.DD:8:10000,allgather.HH:8:10000,"
     "alltoall.DD:8:100000,alltoall.HH:8:100000,reduce_sum.DD:8:1000000,reduce_sum.HH:8:1000000,"
     "allreduce_sum.DD:8:10000:1000000,allreduce_sum.HH:8:10000:1000000,scan_sum.DD:8:1000000,"
     "scan_sum.HH:8:1000000"},
    /* what other calls can be put together to, what they replace, and the arithmetic of a reduction */
    {"compositions",
     "bcast,scatter,gather,allgather,alltoall,reduce_sum,allreduce_sum,scan_sum,reduce_scatter_sum,"
     "reduce_scatter_block_sum,"
     "bcast_as_scatter_allgather,bcast_as_sends,scatter_as_bcast,scatter_as_sends,gather_as_sends,"
     "allgather_as_gather_bcast,allgather_as_alltoall,alltoall_as_sendrecv,reduce_sum_as_reduce_scatter_gather,"
     "allreduce_sum_as_reduce_bcast,allreduce_sum_as_reduce_scatter_allgather,"
     "reduce_scatter_sum_as_reduce_scatterv,reduce_scatter_sum_as_allreduce,scan_sum_as_exscan_reduce_local,"
     "bcast_as_allgatherv,scatter_as_scatterv,gather_as_gatherv,gather_as_reduce,allgather_as_allgatherv,"
     "allgather_as_allreduce,alltoall_as_alltoallv,reduce_sum_as_reduce_scatter_gatherv,"
     "allreduce_sum_as_reduce_scatter_allgatherv,reduce_scatter_block_sum_as_reduce_scatter,reduce_local_sum"},
    /* who swaps messages with whom, by which protocol */
    {"swaps",
     "swap_first_sendrecv,swap_first_nonblocking,swap_first_ordered,swap_first_synchronous,"
     "swap_first_persistent,swap_next_sendrecv,swap_next_nonblocking,swap_next_ordered,"
     "swap_next_synchronous,swap_next_persistent,swap_half_sendrecv,swap_half_nonblocking,"
     "swap_half_ordered,swap_half_synchronous,swap_half_persistent,swap_ring_sendrecv,"
     "swap_ring_nonblocking,swap_ring_ordered,swap_ring_synchronous,swap_ring_persistent"},
    /* ping-pong by the mode of sending */
    {"sends",
     "pingpong_standard,pingpong_synchronous,pingpong_buffered"},
    /* application kernels at their smallest size; the others by --routine */
    {"kernels",
     "series_A,series_A_compute,lufact_A,lufact_A_compute,sor_A,sor_A_compute,sparse_A,crypt_A,crypt_A_compute"},
    {NULL, NULL},
};
/* clang-format on */

const struct family *family_find(const char *name)
{
    for (const struct family *family = families; family->name != NULL; family++)
        if (strcmp(family->name, name) == 0)
            return family;
    return NULL;
}

bool family_has(const struct family *family, const char *routine)
{
    size_t length = strlen(routine);
    for (const char *entry = family->routines; entry != NULL; entry = strchr(entry, ',')) {
        entry += *entry == ',';
        if (strncmp(entry, routine, length) == 0 && strchr(":,", entry[length]) != NULL)
            return true;
    }
    return false;
}
