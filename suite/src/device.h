/* Memory of a GPU, by the library that its driver or runtime installs, which is opened at run time: no build needs it,
 * and a build runs where there is none. */
#ifndef MPICOST_DEVICE_H
#define MPICOST_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "json.h"
#include "options.h"
#include "outcome.h"
#include "plan.h"
#include "world.h"

enum { DEVICE_TEXT = 128 };
enum { DEVICE_UNKNOWN = -1 };

/* The GPU of a rank, as its library tells. */
struct device_facts {
    int64_t index;
    char name[DEVICE_TEXT];
    char bus[DEVICE_TEXT];    /* address on the PCI bus, as the kernel writes it; empty if unknown */
    bool has_uuid;
    unsigned char uuid[16]; /* of a part of it, if it is partitioned */
    char vendor[DEVICE_TEXT]; /* what the kernel has at that address, as "0x10de"; empty if nothing is there */
    int64_t ecc;              /* 1 on, 0 off */
    int64_t clock, memory_clock; /* kHz at most; these three may be DEVICE_UNKNOWN */
};

struct device_function {
    void *function; /* the pointer to be set */
    const char *name;
    bool needed;
};

/* One library. The functions return 0 or its error code, and work on the GPU that was chosen last. */
struct device_library {
    const char *kind;          /* for --device */
    const char *const *files;  /* its names, the usual one first; the last is NULL */
    const char *kernel_driver; /* file with the version of the kernel's part */
    const char *const *asks;   /* functions by which an MPI says whether it takes this memory; the last is NULL */
    int mpich_kind;            /* what MPICH's function calls this kind */
    const struct device_function *functions; /* the last has no name */
    int (*start)(int *count, int *version);
    int (*choose)(int index, struct device_facts *facts);
    int (*allocate)(enum memory_kind kind, size_t bytes, void **memory);
    int (*release)(void *memory);
    int (*copy_in)(void *to, const void *from, size_t bytes); /* to the GPU; over when it returns */
    int (*copy_out)(void *to, const void *from, size_t bytes);
    int (*look)(const void *memory, enum memory_kind *kind); /* what memory the library takes it for */
};

extern const struct device_library device_cuda, device_rocm;

/* What a rank uses; nothing is open where `library` is NULL. */
struct device {
    const struct device_library *library;
    int version;            /* of the driver, as the library counts */
    char path[4096];        /* of the library that is loaded */
    char kernel_driver[DEVICE_TEXT];
    int64_t mpi_takes;      /* what the MPI says: 1, 0 or DEVICE_UNKNOWN */
    struct device_facts facts;
};

/* Opens the library and takes the GPU of this rank: that of its number on its host, or as --devices says. Does nothing
 * if no case says where its buffers lie. */
bool device_open(struct device *device, const struct plan *plan, const struct options *options,
                 const struct world *world, struct outcome *outcome);

/* Memory of a kind other than the host's, which the library must know as such. NULL on failure. */
void *device_allocate(const struct device *device, enum memory_kind kind, size_t bytes, struct outcome *outcome);
void device_release(const struct device *device, void *memory);

/* A failure ends the program: a buffer of which half was copied is none. */
void device_copy_in(const struct device *device, void *to, const void *from, size_t bytes);
void device_copy_out(const struct device *device, void *to, const void *from, size_t bytes);

/* The key `gpu` of the run record, on rank 0 while all others call device_answer. Nothing where none is open. */
void device_write(struct json *json, const struct device *device, const struct control *control);
void device_answer(const struct device *device, const struct control *control);

#endif
