/* The small text files in which the kernel describes the machine. */
#ifndef MPICOST_SYSTEM_FILES_H
#define MPICOST_SYSTEM_FILES_H

#include <stdbool.h>
#include <stddef.h>

enum { SYSTEM_LINE = 4096 }; /* room for a line of any of them */

/* The first line of a file, without its newline. False if there is none. */
bool system_line(const char *path, char *line, size_t size);

/* What follows `mark` in the first line that contains it, without the blanks, tabs and colons before it
 * and the newline after it. False if no line contains it. */
bool system_suffix(const char *path, const char *mark, char *suffix, size_t size);

/* What a line "name : value" tells, without blanks and tabs around it: the first one of that very name whose value is not
 * empty. False if there is none. */
bool system_value(const char *path, const char *name, char *value, size_t size);

#endif
