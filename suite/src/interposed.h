/* What the dynamic linker put in front of the MPI library or in its place: a profiler, or anything else that answers,
 * slows or damages calls. */
#ifndef MPICOST_INTERPOSED_H
#define MPICOST_INTERPOSED_H

#include "control.h"
#include "json.h"

#include <stdint.h>

struct dl_phdr_info;

/* On rank 0: writes the key `interposed`, its own list of objects, and if another rank has others `interposed_elsewhere`,
 * the list of the lowest such rank. All other ranks must call interposed_answer. */
void interposed_write(struct json *json, const struct control *control);
void interposed_answer(const struct control *control);

/* A hash of an object's instructions: a library may change under its name. */
uint64_t interposed_hash(const struct dl_phdr_info *info);

#endif
