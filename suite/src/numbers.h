/* Numbers and lists of words as people type them. */
#ifndef MPICOST_NUMBERS_H
#define MPICOST_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A decimal whole number with nothing before or after it, at most INT64_MAX. */
bool number_parse(const char *text, uint64_t *value);

/* The next entry of a list with this separator, which also ends at a comma: true with the entry copied
 * into `entry` (cut off at `size`, which no valid entry reaches) and `*rest` moved behind it; false at
 * the end. An empty list has one empty entry, so that "8,,8" and "" do not pass for lists. */
bool list_next(const char **rest, char separator, char *entry, size_t size);

#endif
