/* Handles of another family of MPI than the one that this was built for mean something else there. */
#ifndef MPICOST_FOREIGN_H
#define MPICOST_FOREIGN_H

#include <mpi.h>
#include <stdbool.h>
#include <stddef.h>

#ifdef OPEN_MPI
#pragma weak ompi_mpi_comm_world
static inline bool is_foreign(void)
{
    return (const void *)MPI_COMM_WORLD == NULL;
}
#else
extern const char ompi_mpi_comm_world __attribute__((weak));

static inline bool is_foreign(void)
{
    return &ompi_mpi_comm_world != NULL;
}
#endif

#endif
