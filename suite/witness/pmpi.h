/* Included by the compiler in front of every source of the witness, those that it shares with mpicost too.
 *
 * Calls go to PMPI: neither the benchmark nor another tool sees those of the witness. The library is linked to no
 * MPI, or it could choose the one that it is to testify to; what it needs comes from the benchmark's. Open MPI's
 * handles are variables. They are weak, so that a script that starts the benchmark can be started with the witness. */
#ifndef MPICOST_PMPI_H
#define MPICOST_PMPI_H

#include <mpi.h>

#define MPI_Comm_dup PMPI_Comm_dup
#define MPI_Comm_free PMPI_Comm_free
#define MPI_Comm_rank PMPI_Comm_rank
#define MPI_Comm_size PMPI_Comm_size
#define MPI_Comm_split PMPI_Comm_split
#define MPI_Comm_split_type PMPI_Comm_split_type
#define MPI_Get_count PMPI_Get_count
#define MPI_Get_library_version PMPI_Get_library_version
#define MPI_Get_processor_name PMPI_Get_processor_name
#define MPI_Get_version PMPI_Get_version
#define MPI_Recv PMPI_Recv
#define MPI_Send PMPI_Send
#define MPI_Sendrecv PMPI_Sendrecv

#ifdef OPEN_MPI
#pragma weak ompi_mpi_byte
#pragma weak ompi_mpi_c_bool
#pragma weak ompi_mpi_char
#pragma weak ompi_mpi_comm_null
#pragma weak ompi_mpi_comm_world
#pragma weak ompi_mpi_datatype_null
#pragma weak ompi_mpi_double
#pragma weak ompi_mpi_info_null
#pragma weak ompi_mpi_int
#pragma weak ompi_mpi_int32_t
#pragma weak ompi_mpi_int64_t
#pragma weak ompi_mpi_uint32_t
#pragma weak ompi_mpi_uint64_t
#pragma weak ompi_mpi_unsigned
#pragma weak ompi_mpi_unsigned_long
#pragma weak ompi_mpi_unsigned_long_long
#endif
#pragma weak PMPI_Get_library_version

#endif
