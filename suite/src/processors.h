/* Which processors the hosts have: a job may be given nodes of several kinds. */
#ifndef MPICOST_PROCESSORS_H
#define MPICOST_PROCESSORS_H

#include "control.h"
#include "json.h"

/* On rank 0 of `leaders`, of which there is one on each host: writes the key `cpu_model`, all names that differ, sorted
 * and joined by " + ". All other ranks of it must call processors_answer. */
void processors_write(struct json *json, const struct control *leaders);
void processors_answer(const struct control *leaders);

#endif
