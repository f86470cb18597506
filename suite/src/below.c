#include "below.h"

#include "interposed.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { PARTS_MOST = 4, FI_TYPE_VERSION = 18 };

/* A library below MPIs with its parts and plugins. */
struct layer {
    const char *name;
    const char *parts[PARTS_MOST]; /* how the names of its files begin, the one that tells its version first */
    const char *plugin;            /* how those of others end before `.so`; NULL: none */
};

static const struct layer layers[] = {
    {"libfabric", {"libfabric"}, "-fi.so"},
    {"ucx", {"libucp", "libuct", "libucs", "libucm"}, NULL},
};

struct found {
    const struct layer *layer;
    const char *path; /* of the first file that tells the version; NULL if there is none */
    uint64_t text;    /* sum of the hashes of all parts, in whatever order they are loaded */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* Whether a file is of this name: `libucp.so.0`, and as wheels rename it, `libucp-1a2b3c.so.0`; `libuct_ib.so`. */
static bool is_part(const char *file, const char *part)
{
    size_t length = strlen(part);
    return strncmp(file, part, length) == 0 && file[length] != '\0' && strchr(".-_", file[length]) != NULL;
}

static int add(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct found *found = data;
    const char *file = base_name(info->dlpi_name);
    const struct layer *layer = found->layer;
    bool own = layer->plugin != NULL && strstr(file, layer->plugin) != NULL;
    for (size_t i = 0; i < PARTS_MOST && layer->parts[i] != NULL && file[0] != '\0'; i++) {
        bool fits = is_part(file, layer->parts[i]);
        own |= fits;
        if (fits && i == 0 && found->path == NULL)
            found->path = info->dlpi_name;
    }
    if (own)
        found->text += interposed_hash(info);
    return 0;
}

/* What the library says of its version; empty if it says nothing. */
static void read_version(const struct found *found, char *version, size_t size)
{
    const char *said = NULL;
    void *object = dlopen(found->path, RTLD_LAZY | RTLD_NOLOAD);
    void *of_ucx = object != NULL ? dlsym(object, "ucp_get_version_string") : NULL;
    void *of_libfabric = object != NULL ? dlsym(object, "fi_tostr") : NULL;
    if (of_ucx != NULL)
        said = ((const char *(*)(void))of_ucx)();
    else if (of_libfabric != NULL)
        said = ((const char *(*)(const void *, int))of_libfabric)("", FI_TYPE_VERSION);
    snprintf(version, size, "%s", said != NULL ? said : "");
    if (object != NULL)
        dlclose(object);
}

void below_write(struct json *json)
{
    json_key(json, "below");
    json_open(json, '[');
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        struct found found = {.layer = &layers[i]};
        char text[17], version[64];
        dl_iterate_phdr(add, &found);
        if (found.path == NULL)
            continue;
        read_version(&found, version, sizeof version);
        snprintf(text, sizeof text, "%016" PRIx64, found.text);
        json_open(json, '{');
        json_key_string(json, "name", layers[i].name);
        json_key_string(json, "path", found.path);
        json_key_string(json, "version", version);
        json_key_string(json, "text", text);
        json_close(json, '}');
    }
    json_close(json, ']');
}
