#include "routine.h"

#include <math.h>
#include <string.h>

const struct routine *routine_find(const char *name)
{
    for (size_t i = 0; i < routine_count; i++)
        if (strcmp(routines[i].name, name) == 0)
            return &routines[i];
    return NULL;
}

bool family_find(const char *name, enum family *family)
{
    static const char *const names[FAMILIES] = {"luecke", "luecke2001", "luecke2003"};
    for (int i = 0; i < FAMILIES; i++)
        if (strcmp(names[i], name) == 0) {
            *family = (enum family)i;
            return true;
        }
    return false;
}

bool routine_takes_part(const struct routine *routine, const struct exchange *exchange)
{
    return !routine->paired || exchange->rank == 0 || exchange->rank == exchange->peer;
}

double routine_divisor(const struct routine *routine, int processes)
{
    if (processes == 1 || routine->scaling == SCALING_NONE)
        return 1;
    return routine->scaling == SCALING_LOG2 ? log2(processes) : processes - 1;
}

MPI_Op combine_op(enum combine combine)
{
    switch (combine) {
    case COMBINE_SUM:
        return MPI_SUM;
    case COMBINE_MIN:
        return MPI_MIN;
    case COMBINE_MAX:
        return MPI_MAX;
    default:
        return MPI_OP_NULL;
    }
}
