#include "cpu_list.h"

#include <stdlib.h>

/* Takes the next range off the list. False at its end. */
static bool next_range(const char **list, long *first, long *last)
{
    char *end;
    *first = *last = strtol(*list, &end, 10);
    if (end == *list)
        return false;
    if (*end == '-')
        *last = strtol(end + 1, &end, 10);
    *list = *end == ',' ? end + 1 : end;
    return true;
}

int cpu_list_count(const char *list)
{
    long count = 0, first, last;
    while (next_range(&list, &first, &last))
        count += last - first + 1;
    return (int)count;
}

int cpu_list_first(const char *list)
{
    long first, last;
    return next_range(&list, &first, &last) ? (int)first : 0;
}

int cpu_list_common(const char *list, const char *other)
{
    long common = 0, first, last, other_first, other_last;
    while (next_range(&list, &first, &last))
        for (const char *rest = other; next_range(&rest, &other_first, &other_last);) {
            long from = first > other_first ? first : other_first;
            long to = last < other_last ? last : other_last;
            common += to >= from ? to - from + 1 : 0;
        }
    return (int)common;
}
