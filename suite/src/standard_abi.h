/* The standard ABI of MPI (MPI 5.0, chapter 20): a program that is built against it runs on every MPI that has it. */
#ifndef MPICOST_STANDARD_ABI_H
#define MPICOST_STANDARD_ABI_H

#include <stdbool.h>

#include "json.h"

/* Whether this process uses its MPI by the standard ABI: by the name of the library, which the standard fixes. Not by
 * MPI_Abi_get_version, which the first libraries that have the ABI have not (MPICH 5.0.1, Intel MPI 2021.18). */
bool standard_abi_is_used(void);

/* The key `standard_abi` of a program that is built against it: version, hash of the program's file, and the path of
 * the library that answers. Nothing of another program. */
void standard_abi_write(struct json *json);

#endif
