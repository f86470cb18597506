/* Keys of a `run` record that any program can write of itself, of its MPI library and of its machine. */
#ifndef MPICOST_ORIGIN_H
#define MPICOST_ORIGIN_H

#include "caches.h"
#include "json.h"

/* What wrote the record: `suite_version`, `source_hash`, `compiler`, `compiler_flags`. */
void origin_build(struct json *json);

/* The library that answers the calls: `mpi_library`, `mpi_standard`. */
void origin_library(struct json *json);

/* Now, under this key, as `date_utc`. */
void origin_date(struct json *json, const char *key);

/* `kernel`, `caches`. */
void origin_machine(struct json *json, const struct caches *caches);

/* Variables of MPI libraries and of Slurm, without secrets: `environment`. */
void origin_environment(struct json *json);

#endif
