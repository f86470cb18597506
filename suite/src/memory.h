/* What this program allocates, counted, and what there is. */
#ifndef MPICOST_MEMORY_H
#define MPICOST_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* Where a buffer lies: in the host's memory, in that of a GPU, or where the GPU's driver moves it. */
enum memory_kind { MEMORY_HOST, MEMORY_DEVICE, MEMORY_MANAGED, MEMORY_KINDS };

extern const char *const memory_names[]; /* indexed by enum memory_kind */

struct memory {
    size_t allocated; /* bytes now */
    size_t peak;      /* bytes at most so far */
};

/* A page-aligned block, or NULL. Zero bytes give a valid block too. */
void *memory_allocate(struct memory *memory, size_t bytes);

/* Gives back a block of memory_allocate with its size. NULL is allowed. */
void memory_free(struct memory *memory, void *block, size_t bytes);

/* Bytes that processes of this user can still have on this host: what the kernel says is available,
 * within the limits of the control group and of the process. UINT64_MAX if nothing is known. */
uint64_t memory_available(void);

/* What this rank must allocate. */
struct need {
    size_t fixed;   /* bytes for everything but what follows */
    size_t send;    /* bytes of the send buffer, for the largest case */
    size_t receive; /* bytes of the receive buffer, for the largest case */
    size_t image;   /* bytes of what must be in the receive buffer, for the largest case */
    size_t room;    /* bytes for messages that are buffered, for the largest case */
};

#endif
