#include "standard_abi.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* As it was loaded; NULL if unknown. Of the library's own function: what stands in front of it may have
 * MPI_Get_library_version, but hardly this one. */
static const char *library_path(void)
{
    Dl_info found;
    void *function = dlsym(RTLD_DEFAULT, "PMPI_Get_library_version");
    return function != NULL && dladdr(function, &found) != 0 ? found.dli_fname : NULL;
}

bool standard_abi_is_used(void)
{
    static const char name[] = "libmpi_abi.so";
    const char *path = library_path(), *slash = path != NULL ? strrchr(path, '/') : NULL;
    return path != NULL && strncmp(slash != NULL ? slash + 1 : path, name, sizeof name - 1) == 0;
}

#ifdef MPICOST_STANDARD_ABI

/* FNV-1a, as of loaded objects; false if the file cannot be read whole. */
static bool hash_program(uint64_t *hash)
{
    unsigned char data[65536];
    size_t bytes;
    FILE *file = fopen("/proc/self/exe", "rb");
    if (file == NULL)
        return false;
    *hash = 0xcbf29ce484222325u;
    while ((bytes = fread(data, 1, sizeof data, file)) > 0)
        for (size_t i = 0; i < bytes; i++)
            *hash = (*hash ^ data[i]) * 0x100000001b3u;
    bool whole = ferror(file) == 0;
    fclose(file);
    return whole;
}

void standard_abi_write(struct json *json)
{
    char text[32];
    uint64_t hash;
    const char *loaded = library_path();
    char *path = loaded != NULL ? realpath(loaded, NULL) : NULL;
    json_key(json, "standard_abi");
    json_open(json, '{');
    snprintf(text, sizeof text, "%d.%d", MPI_ABI_VERSION, MPI_ABI_SUBVERSION);
    json_key_string(json, "version", text);
    if (hash_program(&hash)) {
        snprintf(text, sizeof text, "%016" PRIx64, hash);
        json_key_string(json, "program", text);
    }
    json_key_string(json, "library", path != NULL ? path : "unknown");
    json_close(json, '}');
    free(path);
}

#else

void standard_abi_write(struct json *json)
{
    (void)json;
}

#endif
