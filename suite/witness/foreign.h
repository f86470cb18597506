/* Handles of another binary interface than the one that this was built for mean something else there: that of Open MPI,
 * that of MPICH and all that follow it, and the standard one. */
#ifndef MPICOST_FOREIGN_H
#define MPICOST_FOREIGN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#include "standard_abi.h"

#if defined(MPICOST_STANDARD_ABI)
static inline bool is_foreign(void)
{
    return !standard_abi_is_used();
}
#elif defined(OPEN_MPI)
#pragma weak ompi_mpi_comm_world
static inline bool is_foreign(void)
{
    return (const void *)MPI_COMM_WORLD == NULL || standard_abi_is_used();
}
#else
extern const char ompi_mpi_comm_world __attribute__((weak));

static inline bool is_foreign(void)
{
    return &ompi_mpi_comm_world != NULL || standard_abi_is_used();
}
#endif

#endif
