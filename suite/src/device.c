#include "device.h"

#include <ctype.h>
#include <dlfcn.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gather.h"
#include "numbers.h"
#include "system_files.h"

static const struct device_library *const libraries[] = {&device_cuda, &device_rocm};

static const struct device_library *find_library(const char *kind)
{
    for (size_t i = 0; i < sizeof libraries / sizeof libraries[0]; i++)
        if (strcmp(libraries[i]->kind, kind) == 0)
            return libraries[i];
    return NULL;
}

/* Where a function is loaded from. */
static void note_path(struct device *device, void *function)
{
    Dl_info found;
    bool known = dladdr(function, &found) != 0;
    char *path = known ? realpath(found.dli_fname, NULL) : NULL;
    snprintf(device->path, sizeof device->path, "%s", path != NULL ? path : "unknown");
    free(path);
}

/* The name of a needed function that the library lacks; NULL if it has all. */
static const char *find_functions(const struct device_library *library, void *handle)
{
    for (const struct device_function *wanted = library->functions; wanted->name != NULL; wanted++) {
        void *found = dlsym(handle, wanted->name);
        if (found == NULL && wanted->needed)
            return wanted->name;
        memcpy(wanted->function, &found, sizeof found);
    }
    return NULL;
}

static bool load(struct device *device, const struct device_library *library, struct outcome *outcome)
{
    void *handle = NULL;
    for (const char *const *file = library->files; handle == NULL && *file != NULL; file++)
        handle = dlopen(*file, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL)
        return outcome_fail(outcome, EXIT_USAGE, "no driver: %s cannot be opened: %s", library->files[0], dlerror());
    const char *missing = find_functions(library, handle);
    if (missing != NULL)
        return outcome_fail(outcome, EXIT_USAGE, "no driver: %s has no function %s", library->files[0], missing);
    note_path(device, dlsym(handle, library->functions[0].name));
    return true;
}

/* The number of this rank's GPU among those that it sees. A launcher may show each rank its own one only. */
static bool choose_index(const struct options *options, const struct world *world, int count, uint64_t *index,
                         struct outcome *outcome)
{
    char text[32];
    const char *rest = options->devices;
    *index = (uint64_t)world->host.rank;
    if (rest != NULL) {
        for (int rank = 0; rank <= world->host.rank; rank++)
            if (!list_next(&rest, ',', text, sizeof text))
                return outcome_fail(outcome, EXIT_USAGE, "--devices: names none for rank %d of host %s",
                                    world->host.rank, world->name);
        if (!number_parse(text, index))
            return outcome_fail(outcome, EXIT_USAGE, "--devices: '%s' is not the number of a GPU", text);
    } else if (count == 1) {
        *index = 0;
    }
    return *index < (uint64_t)count ||
           outcome_fail(outcome, EXIT_USAGE, "no GPU for rank %d: it would have number %llu, and it sees %d on host %s",
                        world->control.rank, (unsigned long long)*index, count, world->name);
}

/* What the kernel has on the PCI bus where the library says that the GPU is: a library cannot make that up. */
static void look_on_bus(struct device_facts *facts)
{
    char path[2 * DEVICE_TEXT], line[SYSTEM_LINE];
    for (char *c = facts->bus; *c != '\0'; c++)
        *c = (char)tolower((unsigned char)*c);
    snprintf(path, sizeof path, "/sys/bus/pci/devices/%s/vendor", facts->bus);
    if (facts->bus[0] != '\0' && strchr(facts->bus, '/') == NULL && system_line(path, line, sizeof line))
        snprintf(facts->vendor, sizeof facts->vendor, "%.*s", DEVICE_TEXT - 1, line);
}

/* What the MPI says of itself, by the functions that MPIs have for it. */
static int64_t ask_mpi(const struct device_library *library)
{
    for (const char *const *name = library->asks; *name != NULL; name++) {
        int (*ask)(void);
        *(void **)&ask = dlsym(RTLD_DEFAULT, *name);
        if (ask != NULL)
            return ask() != 0;
    }
    int (*ask_kind)(int, int *), supported = 0;
    *(void **)&ask_kind = dlsym(RTLD_DEFAULT, "MPIX_GPU_query_support");
    if (ask_kind != NULL && ask_kind(library->mpich_kind, &supported) == MPI_SUCCESS)
        return supported != 0;
    return DEVICE_UNKNOWN;
}

bool device_open(struct device *device, const struct plan *plan, const struct options *options,
                 const struct world *world, struct outcome *outcome)
{
    *device = (struct device){0};
    if (!plan_is_placed(plan))
        return true;
    const struct device_library *library = find_library(options->device);
    int count = 0, code;
    uint64_t index;
    if (!load(device, library, outcome))
        return false;
    if ((code = library->start(&count, &device->version)) != 0)
        return outcome_fail(outcome, EXIT_USAGE, "no driver: %s answers with error %d on host %s", library->files[0], code,
                            world->name);
    if (count < 1)
        return outcome_fail(outcome, EXIT_USAGE, "no GPU: %s sees none on host %s", library->files[0], world->name);
    if (!choose_index(options, world, count, &index, outcome))
        return false;
    if ((code = library->choose((int)index, &device->facts)) != 0)
        return outcome_fail(outcome, EXIT_USAGE, "GPU %d of host %s cannot be used: error %d of %s", (int)index,
                            world->name, code, library->files[0]);
    device->facts.index = (int64_t)index;
    look_on_bus(&device->facts);
    if (!system_line(library->kernel_driver, device->kernel_driver, sizeof device->kernel_driver))
        device->kernel_driver[0] = '\0';
    device->mpi_takes = ask_mpi(library);
    if (device->mpi_takes == 0)
        return outcome_fail(outcome, EXIT_USAGE, "this MPI says that it takes no memory of a GPU (%s)", library->kind);
    device->library = library;
    return true;
}

void *device_allocate(const struct device *device, enum memory_kind kind, size_t bytes, struct outcome *outcome)
{
    void *memory = NULL;
    enum memory_kind found = MEMORY_HOST;
    int code = device->library->allocate(kind, bytes, &memory);
    if (code != 0 || memory == NULL) {
        outcome_fail(outcome, EXIT_USAGE, "%zu bytes of a GPU's memory cannot be had: error %d of %s", bytes, code,
                     device->library->files[0]);
        return NULL;
    }
    code = device->library->look(memory, &found);
    if (code == 0 && found == kind)
        return memory;
    outcome_fail(outcome, EXIT_USAGE, "host memory in disguise: %s takes %s memory that it gave for %s memory",
                 device->library->files[0], code == 0 ? memory_names[found] : "for unknown", memory_names[kind]);
    device->library->release(memory);
    return NULL;
}

void device_release(const struct device *device, void *memory)
{
    if (memory != NULL)
        device->library->release(memory);
}

static void end_if(int code, const char *what)
{
    char text[DEVICE_TEXT];
    if (code == 0)
        return;
    snprintf(text, sizeof text, "copying %s a GPU failed with error %d", what, code);
    print_error(text);
    MPI_Abort(MPI_COMM_WORLD, EXIT_USAGE);
}

void device_copy_in(const struct device *device, void *to, const void *from, size_t bytes)
{
    end_if(bytes > 0 ? device->library->copy_in(to, from, bytes) : 0, "to");
}

void device_copy_out(const struct device *device, void *to, const void *from, size_t bytes)
{
    end_if(bytes > 0 ? device->library->copy_out(to, from, bytes) : 0, "from");
}

static void write_known(struct json *json, const char *key, int64_t value)
{
    if (value != DEVICE_UNKNOWN)
        json_key_integer(json, key, value);
}

static void write_uuid(struct json *json, const struct device_facts *facts)
{
    char text[2 * sizeof facts->uuid + 1];
    for (size_t i = 0; i < sizeof facts->uuid; i++)
        snprintf(text + 2 * i, 3, "%02x", facts->uuid[i]);
    if (facts->has_uuid)
        json_key_string(json, "uuid", text);
}

static void write_facts(struct json *json, int rank, const struct device_facts *facts)
{
    json_open(json, '{');
    json_key_integer(json, "rank", rank);
    json_key_integer(json, "index", facts->index);
    json_key_string(json, "name", facts->name);
    json_key_string(json, "bus", facts->bus);
    write_uuid(json, facts);
    json_key_string(json, "vendor", facts->vendor);
    write_known(json, "ecc", facts->ecc);
    write_known(json, "clock_khz", facts->clock);
    write_known(json, "memory_clock_khz", facts->memory_clock);
    json_close(json, '}');
}

void device_write(struct json *json, const struct device *device, const struct control *control)
{
    struct gather gather;
    struct device_facts facts;
    if (device->library == NULL)
        return;
    json_key(json, "gpu");
    json_open(json, '{');
    json_key_string(json, "kind", device->library->kind);
    json_key_string(json, "library", device->path);
    json_key_integer(json, "version", device->version);
    json_key_string(json, "kernel_driver", device->kernel_driver);
    if (device->mpi_takes != DEVICE_UNKNOWN)
        json_key_bool(json, "mpi_takes", device->mpi_takes != 0);
    json_key(json, "ranks");
    json_open(json, '[');
    write_facts(json, 0, &device->facts);
    gather_open(&gather, control);
    for (int rank = 1; rank < control->size; rank++) {
        gather_get(&gather, &facts, sizeof facts);
        write_facts(json, rank, &facts);
    }
    gather_close(&gather);
    json_close(json, ']');
    json_close(json, '}');
}

void device_answer(const struct device *device, const struct control *control)
{
    struct gather gather;
    if (device->library == NULL)
        return;
    gather_open(&gather, control);
    gather_put(&gather, &device->facts, sizeof device->facts);
    gather_finish(&gather);
}
