"""A program that only an MPI with MPI-IO compiles; an MPI may be built without."""

FILE_ACCESS = """#include <mpi.h>
int main(void) { MPI_File f; return MPI_File_open(MPI_COMM_SELF, "", MPI_SEEK_SET, MPI_INFO_NULL, &f); }
"""
