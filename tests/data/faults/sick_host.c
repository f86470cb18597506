/* Makes one host slow to send: there every MPI_Send of MPI_DOUBLE, which mpicost has in its payload only, takes
 * SICK_SECONDS longer. It sleeps, so that the other hosts of the same machine feel nothing. Loaded with LD_PRELOAD;
 * SICK_HOST is the host's name. */
#define _DEFAULT_SOURCE
#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int sick(void)
{
    char name[256] = "";
    const char *wanted = getenv("SICK_HOST");
    gethostname(name, sizeof name - 1);
    return wanted != NULL && strcmp(name, wanted) == 0;
}

/* By its name: Open MPI's MPI_DOUBLE is a variable, which programs without MPI that load this do not have. */
static int payload(MPI_Datatype type)
{
    char name[MPI_MAX_OBJECT_NAME];
    int length;
    PMPI_Type_get_name(type, name, &length);
    return strcmp(name, "MPI_DOUBLE") == 0;
}

int MPI_Send(const void *data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm)
{
    if (payload(type) && sick())
        usleep((useconds_t)(1e6 * atof(getenv("SICK_SECONDS"))));
    return PMPI_Send(data, count, type, to, tag, comm);
}
