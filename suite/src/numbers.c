#include "numbers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

bool number_parse(const char *text, uint64_t *value)
{
    if (*text == '\0' || text[strspn(text, "0123456789")] != '\0')
        return false;
    errno = 0;
    unsigned long long parsed = strtoull(text, NULL, 10);
    *value = parsed;
    return errno == 0 && parsed <= INT64_MAX;
}

bool list_next(const char **rest, char separator, char *entry, size_t size)
{
    if (*rest == NULL)
        return false;
    const char ends[] = {separator, ',', '\0'};
    size_t length = strcspn(*rest, ends);
    size_t copied = length < size ? length : size - 1;
    memcpy(entry, *rest, copied);
    entry[copied] = '\0';
    *rest = (*rest)[length] == separator ? *rest + length + 1 : NULL;
    return true;
}
