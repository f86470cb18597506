/* Lists of CPUs as the kernel writes them, such as "0-3,8,10-11". */
#ifndef MPICOST_CPU_LIST_H
#define MPICOST_CPU_LIST_H

#include <stdbool.h>

/* Number of CPUs in the list. */
int cpu_list_count(const char *list);

/* The first CPU of the list; 0 if it is empty. */
int cpu_list_first(const char *list);

/* How many CPUs of `list` are in `other`. */
int cpu_list_common(const char *list, const char *other);

#endif
