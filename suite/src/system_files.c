#include "system_files.h"

#include <stdio.h>
#include <string.h>

static bool next_line(FILE *file, char *line, size_t size)
{
    if (fgets(line, (int)size, file) == NULL)
        return false;
    line[strcspn(line, "\n")] = '\0';
    return true;
}

bool system_line(const char *path, char *line, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    bool found = next_line(file, line, size);
    fclose(file);
    return found;
}

bool system_suffix(const char *path, const char *mark, char *suffix, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    char line[SYSTEM_LINE];
    const char *found = NULL;
    while (found == NULL && next_line(file, line, sizeof line))
        found = strstr(line, mark);
    fclose(file);
    if (found == NULL)
        return false;
    found += strlen(mark);
    snprintf(suffix, size, "%s", found + strspn(found, " \t:"));
    return true;
}
