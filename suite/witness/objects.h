/* Programs and libraries that this process has loaded, and what tells one of them from another. */
#ifndef MPICOST_OBJECTS_H
#define MPICOST_OBJECTS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "json.h"

enum { OBJECT_ID_BYTES = 129 };

/* A line of /proc/self/maps. */
struct mapping {
    uintptr_t begin, end, offset;
    char rights[8], path[4096];
};

/* False at the end of the file. */
bool objects_next(FILE *maps, struct mapping *mapping);

/* Its build ID, or a hash of its instructions; false if no program or library begins there. */
bool objects_identify(const struct mapping *mapping, char *id);

/* The key `loaded`: what tells the program from another build of it (`program`), and all libraries that are loaded, but
 * this one, from others (`libraries`). */
void objects_write(struct json *json);

#endif
