/* Which releases of UCX and libfabric the MPI has loaded: the libraries below it that carry its messages. */
#ifndef MPICOST_BELOW_H
#define MPICOST_BELOW_H

#include "json.h"

/* Writes the key `below`, of this process. */
void below_write(struct json *json);

#endif
