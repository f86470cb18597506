#include "facts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "complaint.h"
#include "line.h"
#include "objects.h"
#include "origin.h"
#include "standard_abi.h"

enum { NAME_BYTES = 1024, TEXT_MORE = 4096 };

/* --- Control variables ------------------------------------------------------------------------------------------ */

struct word {
    int value;
    const char *text;
};

static const char *find_word(const struct word *words, size_t count, int value)
{
    for (size_t i = 0; i < count; i++)
        if (words[i].value == value)
            return words[i].text;
    return "unknown";
}

static const char *verbosity_word(int value)
{
    const struct word words[] = {
        {MPI_T_VERBOSITY_USER_BASIC, "user basic"},     {MPI_T_VERBOSITY_USER_DETAIL, "user detail"},
        {MPI_T_VERBOSITY_USER_ALL, "user all"},         {MPI_T_VERBOSITY_TUNER_BASIC, "tuner basic"},
        {MPI_T_VERBOSITY_TUNER_DETAIL, "tuner detail"}, {MPI_T_VERBOSITY_TUNER_ALL, "tuner all"},
        {MPI_T_VERBOSITY_MPIDEV_BASIC, "developer basic"}, {MPI_T_VERBOSITY_MPIDEV_DETAIL, "developer detail"},
        {MPI_T_VERBOSITY_MPIDEV_ALL, "developer all"},
    };
    return find_word(words, sizeof words / sizeof *words, value);
}

static const char *scope_word(int value)
{
    const struct word words[] = {
        {MPI_T_SCOPE_CONSTANT, "constant"}, {MPI_T_SCOPE_READONLY, "read only"}, {MPI_T_SCOPE_LOCAL, "local"},
        {MPI_T_SCOPE_GROUP, "group"},       {MPI_T_SCOPE_GROUP_EQ, "group equal"}, {MPI_T_SCOPE_ALL, "all"},
        {MPI_T_SCOPE_ALL_EQ, "all equal"},
    };
    return find_word(words, sizeof words / sizeof *words, value);
}

/* Every value as text: numbers of 64 bits do not fit into those of JSON. */
static void format_value(char *text, size_t size, MPI_Datatype type, const void *value)
{
    if (type == MPI_INT || type == MPI_INT32_T)
        snprintf(text, size, "%d", *(const int *)value);
    else if (type == MPI_C_BOOL)
        snprintf(text, size, "%d", *(const bool *)value);
    else if (type == MPI_INT64_T)
        snprintf(text, size, "%" PRId64, *(const int64_t *)value);
    else if (type == MPI_UNSIGNED || type == MPI_UINT32_T)
        snprintf(text, size, "%u", *(const unsigned *)value);
    else if (type == MPI_UNSIGNED_LONG || type == MPI_UINT64_T)
        snprintf(text, size, "%lu", *(const unsigned long *)value);
    else if (type == MPI_UNSIGNED_LONG_LONG)
        snprintf(text, size, "%llu", *(const unsigned long long *)value);
    else if (type == MPI_DOUBLE)
        snprintf(text, size, "%g", *(const double *)value);
    else if (type == MPI_CHAR)
        snprintf(text, size, "%s", (const char *)value);
}

/* The key `value`; of what belongs to an object, or cannot be read, there is none. */
static void write_value(struct json *json, int index, MPI_Datatype type, int bind)
{
    MPI_T_cvar_handle handle;
    int count = 0;
    if (bind != MPI_T_BIND_NO_OBJECT || PMPI_T_cvar_handle_alloc(index, NULL, &handle, &count) != MPI_SUCCESS)
        return;
    size_t size = (count > 0 ? (size_t)count : 0) * sizeof(double) + TEXT_MORE;
    char *value = calloc(size, 1), *text = calloc(size, 1);
    if (value != NULL && text != NULL && (count == 1 || type == MPI_CHAR) &&
        PMPI_T_cvar_read(handle, value) == MPI_SUCCESS) {
        format_value(text, size, type, value);
        json_key_string(json, "value", text);
    }
    free(text);
    free(value);
    PMPI_T_cvar_handle_free(&handle);
}

static void write_variable(struct json *json, int index)
{
    char name[NAME_BYTES] = "";
    int length = sizeof name, none = 0, verbosity = 0, bind = 0, scope = 0;
    MPI_Datatype type = MPI_DATATYPE_NULL;
    MPI_T_enum words;
    int found =
        PMPI_T_cvar_get_info(index, name, &length, &verbosity, &type, &words, NULL, &none, &bind, &scope);
    if (found != MPI_SUCCESS)
        return; /* as of a component that was closed */
    json_open(json, '{');
    json_key_string(json, "name", name);
    json_key_string(json, "verbosity", verbosity_word(verbosity));
    json_key_string(json, "scope", scope_word(scope));
    write_value(json, index, type, bind);
    json_close(json, '}');
}

static void write_variables(struct json *json)
{
    int provided, count = 0;
    json_key(json, "variables");
    json_open(json, '[');
    if (PMPI_T_init_thread(MPI_THREAD_SINGLE, &provided) == MPI_SUCCESS) {
        PMPI_T_cvar_get_num(&count);
        for (int i = 0; i < count; i++)
            write_variable(json, i);
        PMPI_T_finalize();
    }
    json_close(json, ']');
}

/* --- The record ------------------------------------------------------------------------------------------------- */

/* The keys `objects`, and `linked_as` with the path of the object that has this function. */
static void write_objects(struct json *json, uintptr_t function)
{
    struct mapping mapping;
    char library[sizeof mapping.path] = "";
    FILE *maps = fopen("/proc/self/maps", "r");
    json_key(json, "objects");
    json_open(json, '[');
    while (maps != NULL && objects_next(maps, &mapping)) {
        char id[OBJECT_ID_BYTES];
        if (mapping.begin <= function && function < mapping.end)
            memcpy(library, mapping.path, sizeof library);
        if (!objects_identify(&mapping, id))
            continue;
        json_open(json, '{');
        json_key_string(json, "path", mapping.path);
        json_key_string(json, "id", id);
        json_close(json, '}');
    }
    json_close(json, ']');
    json_key_string(json, "linked_as", library);
    if (maps != NULL)
        fclose(maps);
}

void facts_write(void)
{
    const char *path = getenv("PLUMBLINE_FACTS");
    struct line line;
    if (path == NULL)
        return;
    line_open(&line);
    json_open(&line.json, '{');
    json_key_string(&line.json, "record", "facts");
    json_key_integer(&line.json, "schema", 1);
    origin_library(&line.json);
    standard_abi_write(&line.json);
    write_objects(&line.json, (uintptr_t)PMPI_Get_library_version);
    write_variables(&line.json);
    origin_environment(&line.json);
    json_close(&line.json, '}');
    json_newline(&line.json);
    if (!line_append(&line, path))
        complain("facts", "cannot write to the file that PLUMBLINE_FACTS names");
}
