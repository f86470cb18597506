/* The file of records. Only rank 0 has one; a write that fails is remembered until it is asked for. */
#ifndef MPICOST_OUTPUT_H
#define MPICOST_OUTPUT_H

#include <stdbool.h>

#include "json.h"
#include "outcome.h"

struct output {
    const char *path; /* NULL: no file was asked for */
    struct json json; /* file NULL: this rank writes nothing */
};

/* Creates the file, on rank 0. */
bool output_open(struct output *output, const char *path, int rank, struct outcome *outcome);

/* Writes out what is buffered. False, with the outcome set, if anything up to here could not be written. */
bool output_flush(struct output *output, struct outcome *outcome);

/* The same, down to the storage device. */
bool output_sync(struct output *output, struct outcome *outcome);

/* Closes the file. False, with the outcome set, if that fails. */
bool output_close(struct output *output, struct outcome *outcome);

#endif
