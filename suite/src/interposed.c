#include "interposed.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <link.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

enum { OBJECTS_MOST = 16, PATH_BYTES = 240, LOADED_MOST = 1024 };

struct object {
    char path[PATH_BYTES];
    uint64_t text; /* hash of its instructions: a library may change under its name */
};

struct interposed {
    uint64_t count;
    struct object objects[OBJECTS_MOST];
};

/* Calls that benchmarks time, each with the name under which the MPI library itself has it. */
struct call {
    const char *name;
    const void *answers, *own; /* NULL: nowhere, as in a program that has its MPI inside */
    bool twice;                /* whether another object has the MPI library's function too */
};

static struct call calls[] = {
    {.name = "PMPI_Send"},      {.name = "PMPI_Recv"},      {.name = "PMPI_Isend"},     {.name = "PMPI_Irecv"},
    {.name = "PMPI_Wait"},      {.name = "PMPI_Waitall"},   {.name = "PMPI_Sendrecv"},  {.name = "PMPI_Barrier"},
    {.name = "PMPI_Bcast"},     {.name = "PMPI_Scatter"},   {.name = "PMPI_Gather"},    {.name = "PMPI_Allgather"},
    {.name = "PMPI_Alltoall"},  {.name = "PMPI_Reduce"},    {.name = "PMPI_Allreduce"}, {.name = "PMPI_Scan"},
    {.name = "PMPI_Get_library_version"},
};

/* A walk over all objects, in the order in which symbols are searched; what is opened later comes last. */
struct walk {
    const ElfW(Dyn) * program; /* dynamic section of the program */
    const char *strings;
    size_t place;       /* of the object that comes next; 0: the program */
    size_t last_needed; /* place of the last object that the program was linked to */
    const char *loaded[LOADED_MOST]; /* by place */
    struct interposed *found;
};

static uint64_t mix(uint64_t hash, const void *data, size_t bytes)
{
    const unsigned char *rest = data; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ rest[i]) * 0x100000001b3u;
    return hash;
}

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

static const ElfW(Dyn) * dynamic_section(const struct dl_phdr_info *info)
{
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_type == PT_DYNAMIC)
            return (const void *)(info->dlpi_addr + info->dlpi_phdr[i].p_vaddr);
    return NULL;
}

/* Some linkers leave the address as it is in the file. */
static const char *string_table(const struct dl_phdr_info *info, const ElfW(Dyn) * entry)
{
    for (; entry != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_STRTAB)
            return (const void *)(entry->d_un.d_ptr + (entry->d_un.d_ptr < info->dlpi_addr ? info->dlpi_addr : 0));
    return NULL;
}

/* The name under which others are linked to the object. */
static const char *linked_name(const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *entry = dynamic_section(info);
    const char *strings = string_table(info, entry);
    for (; strings != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_SONAME)
            return strings + entry->d_un.d_val;
    return base_name(info->dlpi_name);
}

/* Whether the program was linked to the object. */
static bool is_needed(const struct walk *walk, const struct dl_phdr_info *info)
{
    const ElfW(Dyn) *entry = walk->program;
    for (; walk->strings != NULL && entry->d_tag != DT_NULL; entry++)
        if (entry->d_tag == DT_NEEDED &&
            strcmp(base_name(walk->strings + entry->d_un.d_val), linked_name(info)) == 0)
            return true;
    return false;
}

static bool holds(const struct dl_phdr_info *info, const void *address)
{
    for (int i = 0; address != NULL && i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (uintptr_t)address - info->dlpi_addr - part->p_vaddr < part->p_memsz)
            return true;
    }
    return false;
}

/* Whether the object is the kernel's or the linker itself, or has this very code in it. */
static bool is_own(const struct dl_phdr_info *info)
{
    return holds(info, calls) || holds(info, (const void *)getauxval(AT_SYSINFO_EHDR)) ||
           holds(info, (const void *)getauxval(AT_BASE));
}

/* Whether a call of MPI ends there, and the MPI library's own function is elsewhere, or there as well. */
static bool answers_instead(const struct dl_phdr_info *info)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (calls[i].own != NULL && holds(info, calls[i].answers) && (!holds(info, calls[i].own) || calls[i].twice))
            return true;
    return false;
}

/* A library with all names of an MPI, its soname too, stands for it: but the one behind it is loaded as well. */
static void look_for_second(const struct walk *walk)
{
    for (size_t place = 1; place < walk->place && place < LOADED_MOST; place++) {
        void *object = dlopen(walk->loaded[place], RTLD_LAZY | RTLD_NOLOAD);
        for (size_t i = 0; object != NULL && i < sizeof calls / sizeof *calls; i++) {
            const void *own = dlsym(object, calls[i].name);
            calls[i].twice |= own != NULL && calls[i].own != NULL && own != calls[i].own;
        }
        if (object != NULL)
            dlclose(object);
    }
}

uint64_t interposed_hash(const struct dl_phdr_info *info)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & (PF_R | PF_W | PF_X)) == (PF_R | PF_X))
            hash = mix(hash, (const void *)(info->dlpi_addr + part->p_vaddr), part->p_filesz);
    }
    return hash;
}

/* What does not fit into the list changes the hash of its last object. */
static void add(struct interposed *found, const char *path, uint64_t text)
{
    size_t length = strlen(path), place = found->count++;
    if (place >= OBJECTS_MOST) {
        found->objects[OBJECTS_MOST - 1].text += text;
        return;
    }
    struct object *object = &found->objects[place];
    strncpy(object->path, path + (length < PATH_BYTES ? 0 : length - PATH_BYTES + 1), PATH_BYTES - 1);
    object->text = text;
}

/* Whether the object is one that LD_PRELOAD names. What is named behind all that the program needs stands behind it. */
static bool is_preloaded(const char *path)
{
    const char *names = getenv("LD_PRELOAD");
    while (names != NULL && *names != '\0') {
        size_t length = strcspn(names, " :");
        bool whole = memchr(names, '/', length) != NULL;
        const char *own = whole ? path : base_name(path);
        if (length > 0 && strlen(own) == length && strncmp(own, names, length) == 0)
            return true;
        names += length + (names[length] != '\0');
    }
    return false;
}

static int look_for_last_needed(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct walk *walk = data;
    if (walk->place == 0) {
        walk->program = dynamic_section(info);
        walk->strings = string_table(info, walk->program);
    } else if (is_needed(walk, info)) {
        walk->last_needed = walk->place;
    }
    if (walk->place < LOADED_MOST)
        walk->loaded[walk->place] = info->dlpi_name;
    walk->place++;
    return 0;
}

static int add_if_interposed(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct walk *walk = data;
    size_t place = walk->place++;
    if (place == 0 || is_own(info))
        return 0;
    bool in_front = place < walk->last_needed || is_preloaded(info->dlpi_name);
    if ((in_front && !is_needed(walk, info)) || answers_instead(info))
        add(walk->found, info->dlpi_name, interposed_hash(info));
    return 0;
}

/* Each library that LD_AUDIT names: it is in a name space of its own, and sees every call. */
static void add_auditing(struct interposed *found)
{
    const char *names = getenv("LD_AUDIT");
    while (names != NULL && *names != '\0') {
        size_t length = strcspn(names, ":");
        char *path = strndup(names, length);
        if (path != NULL && length > 0)
            add(found, path, 0);
        free(path);
        names += length + (names[length] != '\0');
    }
}

static void look_up_calls(void)
{
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
        calls[i].own = dlsym(RTLD_DEFAULT, calls[i].name);
        calls[i].answers = dlsym(RTLD_DEFAULT, calls[i].name + 1);
        calls[i].twice = false;
    }
}

/* The linker searches the program, then what is preloaded, then what the program was linked to. */
static void read_interposed(struct interposed *found)
{
    struct walk walk = {.found = found};
    memset(found, 0, sizeof *found);
    look_up_calls();
    dl_iterate_phdr(look_for_last_needed, &walk);
    look_for_second(&walk);
    walk.place = 0;
    dl_iterate_phdr(add_if_interposed, &walk);
    add_auditing(found);
}

/* The same for all ranks with the same objects, wherever these are. */
static int64_t fingerprint_of(const struct interposed *interposed)
{
    uint64_t hash = mix(0xcbf29ce484222325u, &interposed->count, sizeof interposed->count);
    for (size_t i = 0; i < OBJECTS_MOST; i++) {
        const char *name = base_name(interposed->objects[i].path);
        hash = mix(hash, name, strlen(name) + 1);
        hash = mix(hash, &interposed->objects[i].text, sizeof interposed->objects[i].text);
    }
    return (int64_t)(hash >> 1);
}

/* The lowest rank with other objects than rank 0; 0 if there is none. Collective. */
static int find_other(const struct interposed *own, const struct control *control)
{
    int64_t fingerprint = fingerprint_of(own), first = fingerprint;
    control_broadcast(control, &first, 1);
    int64_t claim = fingerprint == first ? 0 : control->size - control->rank;
    int64_t highest = control_all_maximum(control, claim);
    return highest == 0 ? 0 : control->size - (int)highest;
}

static void write_list(struct json *json, const struct interposed *interposed)
{
    json_key(json, "interposed");
    json_open(json, '[');
    for (size_t i = 0; i < interposed->count && i < OBJECTS_MOST; i++) {
        char text[17];
        snprintf(text, sizeof text, "%016" PRIx64, interposed->objects[i].text);
        json_open(json, '{');
        json_key_string(json, "path", interposed->objects[i].path);
        json_key_string(json, "text", text);
        json_close(json, '}');
    }
    json_close(json, ']');
}

void interposed_write(struct json *json, const struct control *control)
{
    struct interposed interposed;
    read_interposed(&interposed);
    int other = find_other(&interposed, control);
    write_list(json, &interposed);
    if (other == 0)
        return;
    control_receive(control, other, &interposed, sizeof interposed);
    json_key(json, "interposed_elsewhere");
    json_open(json, '{');
    json_key_integer(json, "rank", other);
    write_list(json, &interposed);
    json_close(json, '}');
}

void interposed_answer(const struct control *control)
{
    struct interposed interposed;
    read_interposed(&interposed);
    if (find_other(&interposed, control) == control->rank)
        control_send(control, 0, &interposed, sizeof interposed);
}
