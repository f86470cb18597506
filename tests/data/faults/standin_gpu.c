/* Stands in for NVIDIA's driver, or AMD's runtime, on a machine without a GPU: what it gives is memory of the host, which nobody may touch
 * but its own copies and calls of the MPI. Preloaded; its name in the linker's list is the driver's, so that whoever
 * opens that gets this.
 *
 * STANDIN_GPU: what it does wrong, as `no-driver`, `no-device`, `disguise` (it says itself that memory is the host's),
 * `no-memory`, `not-taken` (the MPI says that it takes none), `one-for-all` (every rank has the same GPU),
 * `corrupt` (a broadcast delivers a wrong byte). */
#define _GNU_SOURCE
#include <mpi.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCKS = 16, NO_DEVICE = 100, OUT_OF_MEMORY = 2, INVALID_VALUE = 1 };

static struct {
    char *start;
    size_t bytes;
    bool managed;
} blocks[BLOCKS];

static bool does(const char *fault)
{
    const char *said = getenv("STANDIN_GPU");
    return said != NULL && strcmp(said, fault) == 0;
}

static void allow(int protection)
{
    for (int i = 0; i < BLOCKS; i++)
        if (blocks[i].start != NULL && !blocks[i].managed)
            mprotect(blocks[i].start, blocks[i].bytes, protection);
}

static void unlock(void)
{
    allow(PROT_READ | PROT_WRITE);
}

static int lock(int code)
{
    allow(PROT_NONE);
    return code;
}

/* --- the driver --- */

int cuInit(unsigned flags)
{
    (void)flags;
    return does("no-driver") ? NO_DEVICE : 0;
}

int cuDriverGetVersion(int *version)
{
    *version = 12040;
    return 0;
}

int cuDeviceGetCount(int *count)
{
    *count = does("no-device") ? 0 : 4;
    return 0;
}

int cuDeviceGet(int *device, int index)
{
    *device = index;
    return 0;
}

int cuDeviceGetName(char *name, int size, int device)
{
    (void)device;
    snprintf(name, (size_t)size, "stand-in of host memory");
    return 0;
}

int cuDeviceGetPCIBusId(char *bus, int size, int device)
{
    snprintf(bus, (size_t)size, "FFFF:%02X:00.0", device);
    return 0;
}

int cuDeviceGetUuid_v2(unsigned char *uuid, int device)
{
    memset(uuid, 0xee, 16);
    uuid[15] = (unsigned char)(does("one-for-all") ? 0 : device);
    return 0;
}

int cuDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 32;
    return attribute == 32 ? 0 : INVALID_VALUE;
}

int cuDevicePrimaryCtxRetain(void **context, int device)
{
    (void)device;
    *context = &blocks;
    return 0;
}

int cuCtxSetCurrent(void *context)
{
    return context == &blocks ? 0 : INVALID_VALUE;
}

int cuCtxSynchronize(void)
{
    return 0;
}

static int allocate(unsigned long long *given, size_t bytes, bool managed)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + page - 1) / page * page;
    int i = 0;
    while (i < BLOCKS && blocks[i].start != NULL)
        i++;
    if (does("no-memory") || i == BLOCKS)
        return OUT_OF_MEMORY;
    char *start = mmap(NULL, whole, managed ? PROT_READ | PROT_WRITE : PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (start == MAP_FAILED)
        return OUT_OF_MEMORY;
    blocks[i].start = start;
    blocks[i].bytes = whole;
    blocks[i].managed = managed;
    *given = (unsigned long long)(uintptr_t)start;
    return 0;
}

int cuMemAlloc_v2(unsigned long long *given, size_t bytes)
{
    return allocate(given, bytes, false);
}

int cuMemAllocManaged(unsigned long long *given, size_t bytes, unsigned flags)
{
    (void)flags;
    return allocate(given, bytes, true);
}

static int find(unsigned long long memory)
{
    for (int i = 0; i < BLOCKS; i++)
        if (memory - (uintptr_t)blocks[i].start < blocks[i].bytes)
            return i;
    return -1;
}

int cuMemFree_v2(unsigned long long memory)
{
    int i = find(memory);
    if (i < 0)
        return INVALID_VALUE;
    munmap(blocks[i].start, blocks[i].bytes);
    blocks[i].start = NULL;
    blocks[i].bytes = 0;
    return 0;
}

int cuMemcpyHtoD_v2(unsigned long long to, const void *from, size_t bytes)
{
    if (find(to) < 0)
        return INVALID_VALUE;
    unlock();
    memcpy((void *)(uintptr_t)to, from, bytes);
    return lock(0);
}

int cuMemcpyDtoH_v2(void *to, unsigned long long from, size_t bytes)
{
    if (find(from) < 0)
        return INVALID_VALUE;
    unlock();
    memcpy(to, (void *)(uintptr_t)from, bytes);
    return lock(0);
}

int cuPointerGetAttribute(unsigned *value, int attribute, unsigned long long memory)
{
    int i = find(memory);
    if (i < 0)
        return INVALID_VALUE;
    *value = attribute == 8 ? blocks[i].managed : does("disguise") ? 1 : 2;
    return 0;
}

/* --- AMD's runtime, of which the same is true --- */

struct attributes {
    int type, device;
    void *device_pointer, *host_pointer;
    int managed;
};

int hipInit(unsigned flags)
{
    return cuInit(flags);
}

int hipRuntimeGetVersion(int *version)
{
    return cuDriverGetVersion(version);
}

int hipGetDeviceCount(int *count)
{
    return cuDeviceGetCount(count);
}

int hipSetDevice(int device)
{
    return device < 4 ? 0 : NO_DEVICE;
}

int hipDeviceGetName(char *name, int size, int device)
{
    return cuDeviceGetName(name, size, device);
}

int hipDeviceGetPCIBusId(char *bus, int size, int device)
{
    return cuDeviceGetPCIBusId(bus, size, device);
}

int hipDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = 1;
    return attribute == 0 ? 0 : INVALID_VALUE;
}

int hipDeviceSynchronize(void)
{
    return 0;
}

int hipMalloc(void **memory, size_t bytes)
{
    unsigned long long given = 0;
    int code = allocate(&given, bytes, false);
    *memory = (void *)(uintptr_t)given;
    return code;
}

int hipMallocManaged(void **memory, size_t bytes, unsigned flags)
{
    unsigned long long given = 0;
    int code = allocate(&given, bytes, true);
    (void)flags;
    *memory = (void *)(uintptr_t)given;
    return code;
}

int hipFree(void *memory)
{
    return cuMemFree_v2((uintptr_t)memory);
}

int hipMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    enum { TO_DEVICE = 1 };
    return kind == TO_DEVICE ? cuMemcpyHtoD_v2((uintptr_t)to, from, bytes) : cuMemcpyDtoH_v2(to, (uintptr_t)from, bytes);
}

int hipPointerGetAttributes(struct attributes *found, const void *memory)
{
    int i = find((uintptr_t)memory);
    if (i < 0)
        return INVALID_VALUE;
    found->device_pointer = (void *)(uintptr_t)memory;
    found->host_pointer = does("disguise") ? found->device_pointer : NULL;
    found->managed = blocks[i].managed;
    return 0;
}

int MPIX_Query_rocm_support(void)
{
    return !does("not-taken");
}

/* --- the MPI --- */

int MPIX_Query_cuda_support(void)
{
    return !does("not-taken");
}

#define WRAP(name, declared, passed) \
    int MPI_##name declared          \
    {                                \
        unlock();                    \
        return lock(PMPI_##name passed); \
    }

WRAP(Send, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm), (data, n, type, to, tag, comm))
WRAP(Ssend, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm), (data, n, type, to, tag, comm))
WRAP(Isend, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request *request),
     (data, n, type, to, tag, comm, request))
WRAP(Recv, (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status *status),
     (data, n, type, from, tag, comm, status))
WRAP(Irecv, (void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request *request),
     (data, n, type, from, tag, comm, request))
WRAP(Sendrecv,
     (const void *data, int n, MPI_Datatype type, int to, int tag, void *into, int m, MPI_Datatype other, int from,
      int mark, MPI_Comm comm, MPI_Status *status),
     (data, n, type, to, tag, into, m, other, from, mark, comm, status))
WRAP(Wait, (MPI_Request *request, MPI_Status *status), (request, status))
WRAP(Waitall, (int n, MPI_Request requests[], MPI_Status statuses[]), (n, requests, statuses))
WRAP(Bsend, (const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm comm), (data, n, type, to, tag, comm))
WRAP(Startall, (int n, MPI_Request requests[]), (n, requests))

/* `corrupt`: rank 1 receives a wrong byte. */
int MPI_Bcast(void *data, int n, MPI_Datatype type, int root, MPI_Comm comm)
{
    int rank;
    unlock();
    int code = PMPI_Bcast(data, n, type, root, comm);
    PMPI_Comm_rank(comm, &rank);
    if (rank == 1 && n > 0 && does("corrupt"))
        *(unsigned char *)data ^= 1;
    return lock(code);
}

WRAP(Scatter,
     (const void *data, int n, MPI_Datatype type, void *into, int m, MPI_Datatype other, int root, MPI_Comm comm),
     (data, n, type, into, m, other, root, comm))
WRAP(Gather,
     (const void *data, int n, MPI_Datatype type, void *into, int m, MPI_Datatype other, int root, MPI_Comm comm),
     (data, n, type, into, m, other, root, comm))
WRAP(Allgather, (const void *data, int n, MPI_Datatype type, void *into, int m, MPI_Datatype other, MPI_Comm comm),
     (data, n, type, into, m, other, comm))
WRAP(Alltoall, (const void *data, int n, MPI_Datatype type, void *into, int m, MPI_Datatype other, MPI_Comm comm),
     (data, n, type, into, m, other, comm))
WRAP(Reduce, (const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, int root, MPI_Comm comm),
     (data, into, n, type, op, root, comm))
WRAP(Allreduce, (const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (data, into, n, type, op, comm))
WRAP(Scan, (const void *data, void *into, int n, MPI_Datatype type, MPI_Op op, MPI_Comm comm),
     (data, into, n, type, op, comm))
