/* Counts the calls that arrive at the MPI library itself, under their PMPI names, and the communicators made and freed.
 * Loaded with LD_PRELOAD into MPI programs only; one asks by plumbline_counted, which it finds with dlsym. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <mpi.h>
#include <string.h>

static int calls, made, freed;

int plumbline_counted(const char *what)
{
    return strcmp(what, "calls") == 0 ? calls : strcmp(what, "made") == 0 ? made : freed;
}

#define COUNTED(name, parameters, arguments, also)              \
    int PMPI_##name parameters                                  \
    {                                                           \
        static int(*real) parameters;                           \
        if (real == NULL)                                       \
            *(void **)&real = dlsym(RTLD_NEXT, "PMPI_" #name);  \
        calls++;                                                \
        int result = real arguments;                            \
        also;                                                   \
        return result;                                          \
    }

COUNTED(Comm_rank, (MPI_Comm c, int *r), (c, r), )
COUNTED(Comm_size, (MPI_Comm c, int *s), (c, s), )
COUNTED(Comm_dup, (MPI_Comm c, MPI_Comm *n), (c, n), made++)
COUNTED(Comm_split_type, (MPI_Comm c, int t, int k, MPI_Info i, MPI_Comm *n), (c, t, k, i, n), made++)
COUNTED(Comm_split, (MPI_Comm c, int l, int k, MPI_Comm *n), (c, l, k, n), made += *n != MPI_COMM_NULL)
COUNTED(Comm_free, (MPI_Comm * c), (c), freed++)
COUNTED(Get_library_version, (char *v, int *l), (v, l), )
COUNTED(Get_processor_name, (char *n, int *l), (n, l), )
COUNTED(Send, (const void *b, int n, MPI_Datatype t, int d, int g, MPI_Comm c), (b, n, t, d, g, c), )
COUNTED(Recv, (void *b, int n, MPI_Datatype t, int s, int g, MPI_Comm c, MPI_Status *u), (b, n, t, s, g, c, u), )
