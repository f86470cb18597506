#include "objects.h"

#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ID_MOST = 64 };

bool objects_next(FILE *maps, struct mapping *mapping)
{
    char *line = NULL;
    size_t size = 0;
    int place = 0;
    bool read = getline(&line, &size, maps) > 0;
    *mapping = (struct mapping){0};
    if (read && sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %7s %" SCNxPTR " %*s %*s %n", &mapping->begin, &mapping->end,
                       mapping->rights, &mapping->offset, &place) >= 4)
        snprintf(mapping->path, sizeof mapping->path, "%.*s", (int)strcspn(line + place, "\n"), line + place);
    free(line);
    return read;
}

/* A program or library that is loaded, by where it begins: a file that is only mapped, to be read as data, is none. */
struct object {
    uintptr_t begin, base;
    const ElfW(Phdr) *parts;
    size_t count;
};

/* Completes the object if it is this one. */
static int take_object(struct dl_phdr_info *info, size_t bytes, void *data)
{
    struct object *object = data;
    (void)bytes;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type != PT_LOAD || part->p_offset != 0 || info->dlpi_addr + part->p_vaddr != object->begin)
            continue;
        *object = (struct object){object->begin, info->dlpi_addr, info->dlpi_phdr, info->dlpi_phnum};
        return 1;
    }
    return 0;
}

/* Whether a part, as notes, lies in one that is loaded and may be read. */
static bool is_readable(const struct object *object, const ElfW(Phdr) *part)
{
    bool readable = false;
    for (size_t i = 0; i < object->count; i++) {
        const ElfW(Phdr) *around = &object->parts[i];
        readable = readable || (around->p_type == PT_LOAD && (around->p_flags & PF_R) != 0 &&
                                part->p_vaddr >= around->p_vaddr &&
                                part->p_vaddr + part->p_filesz <= around->p_vaddr + around->p_filesz);
    }
    return readable;
}

/* The build ID in a segment of notes, as hexadecimal digits; empty if there is none. */
static void read_notes(const char *notes, size_t bytes, char *id)
{
    for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= bytes;) {
        const ElfW(Nhdr) *note = (const void *)(notes + at);
        size_t name = (note->n_namesz + 3u) & ~3u, rest = (note->n_descsz + 3u) & ~3u;
        const unsigned char *content = (const unsigned char *)(note + 1) + name;
        if (name + rest > bytes - at - sizeof *note)
            return;
        if (note->n_type == NT_GNU_BUILD_ID && note->n_namesz == 4 && note->n_descsz <= ID_MOST)
            for (size_t i = 0; i < note->n_descsz; i++)
                snprintf(id + 2 * i, 3, "%02x", content[i]);
        at += sizeof *note + name + rest;
    }
}

/* What stands for the build ID where there is none, as in many wheels: a hash of the instructions (FNV-1a). */
static void hash_text(const unsigned char *text, size_t bytes, char *id)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < bytes; i++)
        hash = (hash ^ text[i]) * 0x100000001b3u;
    snprintf(id, ID_MOST, "text:%016" PRIx64, hash);
}

bool objects_identify(const struct mapping *mapping, char *id)
{
    struct object object = {.begin = mapping->begin};
    id[0] = '\0';
    if (mapping->path[0] != '/' || mapping->offset != 0 || dl_iterate_phdr(take_object, &object) == 0)
        return false;
    for (size_t i = 0; i < object.count; i++)
        if (object.parts[i].p_type == PT_NOTE && is_readable(&object, &object.parts[i]))
            read_notes((const char *)(object.base + object.parts[i].p_vaddr), object.parts[i].p_filesz, id);
    for (size_t i = 0; i < object.count && id[0] == '\0'; i++)
        if (object.parts[i].p_type == PT_LOAD && (object.parts[i].p_flags & (PF_R | PF_X)) == (PF_R | PF_X))
            hash_text((const unsigned char *)(object.base + object.parts[i].p_vaddr), object.parts[i].p_filesz, id);
    return true;
}

/* FNV-1a. */
static uint64_t mix(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++)
        hash = (hash ^ (unsigned char)*text) * 0x100000001b3u;
    return hash;
}

/* The same wherever the library lies, and in whatever order libraries are loaded. */
static uint64_t hash_library(const char *path, const char *id)
{
    const char *slash = strrchr(path, '/');
    return mix(mix(0xcbf29ce484222325u, slash != NULL ? slash + 1 : path), id);
}

static bool is_own(const struct mapping *mapping)
{
    const char *slash = strrchr(mapping->path, '/');
    return slash != NULL && strcmp(slash, "/libwitness.so") == 0;
}

void objects_write(struct json *json)
{
    struct mapping mapping;
    char program[sizeof mapping.path] = "", id[OBJECT_ID_BYTES], text[17];
    uint64_t libraries = 0;
    FILE *maps = fopen("/proc/self/maps", "r");
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (maps == NULL || length < 0)
        return;
    json_key(json, "loaded");
    json_open(json, '{');
    while (objects_next(maps, &mapping)) {
        if (is_own(&mapping) || !objects_identify(&mapping, id))
            continue;
        if (strcmp(mapping.path, program) == 0)
            json_key_string(json, "program", id);
        else
            libraries += hash_library(mapping.path, id);
    }
    snprintf(text, sizeof text, "%016" PRIx64, libraries);
    json_key_string(json, "libraries", text);
    json_close(json, '}');
    fclose(maps);
}
