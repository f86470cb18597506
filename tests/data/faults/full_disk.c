/* A disk that fills up in the middle: once MPI is up, no file grows beyond 24 KiB. */
#define _POSIX_C_SOURCE 200809L
#include <mpi.h>
#include <signal.h>
#include <sys/resource.h>

int MPI_Init(int *argc, char ***argv)
{
    int result = PMPI_Init(argc, argv);
    struct rlimit limit = {24 * 1024, 24 * 1024};
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &limit);
    return result;
}
