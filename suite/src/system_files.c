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

/* What a line tells of this name; NULL if nothing. Cuts the blanks and tabs behind it. */
static const char *value_in(char *line, const char *name)
{
    size_t length = strlen(name), end = strlen(line);
    if (strncmp(line, name, length) != 0)
        return NULL;
    const char *rest = line + length + strspn(line + length, " \t");
    if (*rest != ':')
        return NULL;
    rest += 1 + strspn(rest + 1, " \t");
    while (line + end > rest && strchr(" \t", line[end - 1]) != NULL)
        line[--end] = '\0';
    return *rest != '\0' ? rest : NULL;
}

bool system_value(const char *path, const char *name, char *value, size_t size)
{
    FILE *file = fopen(path, "r");
    if (file == NULL)
        return false;
    char line[SYSTEM_LINE];
    const char *found = NULL;
    while (found == NULL && next_line(file, line, sizeof line))
        found = value_in(line, name);
    fclose(file);
    if (found == NULL)
        return false;
    snprintf(value, size, "%s", found);
    return true;
}
