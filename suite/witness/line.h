/* A record, put together in memory and added to the end of a file in one piece. */
#ifndef MPICOST_LINE_H
#define MPICOST_LINE_H

#include <stdbool.h>
#include <stddef.h>

#include "json.h"

struct line {
    struct json json; /* where to write the record */
    char *text;
    size_t bytes;
};

/* Ends the process where there is no memory even for this. */
void line_open(struct line *line);

/* Adds the record to the file, down to the storage device, and forgets it. False, with errno set, if that fails.
 * Nothing is written over: what an earlier start left, or several worlds of processes that each take themselves for
 * the only one, shows as a second `run` record. */
bool line_append(struct line *line, const char *path);

#endif
