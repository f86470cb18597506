#include "origin.h"

#include <mpi.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>

#include "build.h"
#include "cpu_list.h"

extern char **environ;

void origin_build(struct json *json)
{
    json_key_string(json, "suite_version", build_version);
    json_key_string(json, "source_hash", build_source_hash);
    json_key_string(json, "compiler", build_compiler);
    json_key_string(json, "compiler_flags", build_flags);
}

void origin_library(struct json *json)
{
    char library[MPI_MAX_LIBRARY_VERSION_STRING], standard[32];
    int length, version, subversion;
    MPI_Get_library_version(library, &length);
    MPI_Get_version(&version, &subversion);
    snprintf(standard, sizeof standard, "%d.%d", version, subversion);
    json_key_string(json, "mpi_library", library);
    json_key_string(json, "mpi_standard", standard);
}

void origin_date(struct json *json, const char *key)
{
    char date[32];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    json_key_string(json, key, date);
}

static void write_caches(struct json *json, const struct caches *caches)
{
    json_key(json, "caches");
    json_open(json, '[');
    for (int i = 0; i < caches->count; i++) {
        const struct cache *cache = &caches->list[i];
        json_open(json, '{');
        json_key_integer(json, "level", cache->level);
        json_key_string(json, "type", cache->type);
        json_key_integer(json, "bytes", (int64_t)cache->bytes);
        json_key_integer(json, "shared_by", cpu_list_count(cache->shared_by));
        json_close(json, '}');
    }
    json_close(json, ']');
}

void origin_machine(struct json *json, const struct caches *caches)
{
    struct utsname kernel;
    json_key_string(json, "kernel", uname(&kernel) >= 0 ? kernel.release : "unknown");
    write_caches(json, caches);
}

static bool matters(const char *variable)
{
    static const char *const prefixes[] = {
        "OMPI_", "PRTE_",  "PMIX_",  "MPICH_", "MPIR_", "I_MPI_", "HYDRA_", "FI_",    "UCX_",        "UCC_",
        "MV2_",  "MVP_",   "PSM2_",  "PSM3_",  "OMP_",  "SMPI_",  "HCOLL_", "SHARP_", "LD_PRELOAD=", "LD_LIBRARY_PATH=",
        "SLURM_", "PLUMBLINE_DELAY",
    };
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++)
        if (strncmp(variable, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return false;
}

/* Some launchers pass credentials in variables of theirs. */
static bool is_secret(const char *name)
{
    static const char *const words[] = {"JWT", "TOKEN", "SECRET", "PASSWORD"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        if (strstr(name, words[i]) != NULL)
            return true;
    return false;
}

/* Writes a variable "NAME=value", unless it is hidden behind another one of the same name. */
static void write_variable(struct json *json, const char *variable)
{
    char name[256];
    size_t length = strcspn(variable, "=");
    if (variable[length] != '=' || length >= sizeof name)
        return;
    memcpy(name, variable, length);
    name[length] = '\0';
    const char *value = variable + length + 1;
    if (!is_secret(name) && getenv(name) == value)
        json_key_string(json, name, value);
}

void origin_environment(struct json *json)
{
    json_key(json, "environment");
    json_open(json, '{');
    for (char **variable = environ; *variable != NULL; variable++)
        if (matters(*variable))
            write_variable(json, *variable);
    json_close(json, '}');
}
