/* Routines that are timed together. A family is one entry of the table in family.c. */
#ifndef MPICOST_FAMILY_H
#define MPICOST_FAMILY_H

#include <stdbool.h>

struct family {
    const char *name;
    const char *routines; /* as --routine has them, each with its sizes, or at those of its own */
};

extern const struct family families[]; /* the first is the default */

/* NULL if there is none of this name. */
const struct family *family_find(const char *name);

/* Whether the routine of this name is in it. */
bool family_has(const struct family *family, const char *routine);

#endif
