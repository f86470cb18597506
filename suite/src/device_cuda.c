/* NVIDIA's driver: the functions, types and numbers of cuda.h that are used here, by the CUDA Driver API's reference. */
#include "device.h"

typedef unsigned long long pointer;
typedef int result, device_number;
typedef void *context;

enum { MEMORY_ATTACH_GLOBAL = 1 };
enum { ATTRIBUTE_CLOCK_RATE = 13, ATTRIBUTE_ECC_ENABLED = 32, ATTRIBUTE_MEMORY_CLOCK_RATE = 36 };
enum { POINTER_MEMORY_TYPE = 2, POINTER_IS_MANAGED = 8 };
enum { TYPE_HOST = 1, TYPE_DEVICE = 2 };

static struct {
    result (*init)(unsigned);
    result (*driver_version)(int *);
    result (*device_count)(int *);
    result (*device)(device_number *, int);
    result (*name)(char *, int, device_number);
    result (*bus)(char *, int, device_number);
    result (*attribute)(int *, int, device_number);
    result (*retain)(context *, device_number);
    result (*set_current)(context);
    result (*synchronize)(void);
    result (*allocate)(pointer *, size_t);
    result (*allocate_managed)(pointer *, size_t, unsigned);
    result (*release)(pointer);
    result (*copy_in)(pointer, const void *, size_t);
    result (*copy_out)(void *, pointer, size_t);
    result (*pointer_attribute)(void *, int, pointer);
    /* may be missing */
    result (*uuid)(unsigned char *, device_number);
    result (*prefetch)(pointer, size_t, device_number, void *);
} cuda;

static device_number chosen;

static const struct device_function functions[] = {
    {&cuda.init, "cuInit", true},
    {&cuda.driver_version, "cuDriverGetVersion", true},
    {&cuda.device_count, "cuDeviceGetCount", true},
    {&cuda.device, "cuDeviceGet", true},
    {&cuda.name, "cuDeviceGetName", true},
    {&cuda.bus, "cuDeviceGetPCIBusId", true},
    {&cuda.attribute, "cuDeviceGetAttribute", true},
    {&cuda.retain, "cuDevicePrimaryCtxRetain", true},
    {&cuda.set_current, "cuCtxSetCurrent", true},
    {&cuda.synchronize, "cuCtxSynchronize", true},
    {&cuda.allocate, "cuMemAlloc_v2", true},
    {&cuda.allocate_managed, "cuMemAllocManaged", true},
    {&cuda.release, "cuMemFree_v2", true},
    {&cuda.copy_in, "cuMemcpyHtoD_v2", true},
    {&cuda.copy_out, "cuMemcpyDtoH_v2", true},
    {&cuda.pointer_attribute, "cuPointerGetAttribute", true},
    {&cuda.uuid, "cuDeviceGetUuid_v2", false},
    {&cuda.prefetch, "cuMemPrefetchAsync", false},
    {NULL, NULL, false},
};

static int start(int *count, int *version)
{
    int code = cuda.init(0);
    code = code != 0 ? code : cuda.driver_version(version);
    return code != 0 ? code : cuda.device_count(count);
}

static int64_t attribute_of(int attribute)
{
    int value;
    return cuda.attribute(&value, attribute, chosen) == 0 ? value : DEVICE_UNKNOWN;
}

/* The primary context is what an MPI uses too. */
static int choose(int index, struct device_facts *facts)
{
    context primary;
    int code = cuda.device(&chosen, index);
    code = code != 0 ? code : cuda.retain(&primary, chosen);
    code = code != 0 ? code : cuda.set_current(primary);
    code = code != 0 ? code : cuda.name(facts->name, sizeof facts->name, chosen);
    if (code != 0)
        return code;
    if (cuda.bus(facts->bus, sizeof facts->bus, chosen) != 0)
        facts->bus[0] = '\0';
    facts->has_uuid = cuda.uuid != NULL && cuda.uuid(facts->uuid, chosen) == 0;
    facts->ecc = attribute_of(ATTRIBUTE_ECC_ENABLED);
    facts->clock = attribute_of(ATTRIBUTE_CLOCK_RATE);
    facts->memory_clock = attribute_of(ATTRIBUTE_MEMORY_CLOCK_RATE);
    return 0;
}

static int allocate(enum memory_kind kind, size_t bytes, void **memory)
{
    pointer given = 0;
    int code = kind == MEMORY_MANAGED ? cuda.allocate_managed(&given, bytes, MEMORY_ATTACH_GLOBAL)
                                      : cuda.allocate(&given, bytes);
    *memory = (void *)(uintptr_t)given;
    return code;
}

static int release(void *memory)
{
    return cuda.release((pointer)(uintptr_t)memory);
}

static bool is_managed(const void *memory)
{
    unsigned managed = 0;
    return cuda.pointer_attribute(&managed, POINTER_IS_MANAGED, (pointer)(uintptr_t)memory) == 0 && managed != 0;
}

/* Managed memory lies on the GPU when the copy is over, where the driver can move it. */
static int copy_in(void *to, const void *from, size_t bytes)
{
    int code = cuda.copy_in((pointer)(uintptr_t)to, from, bytes);
    if (code == 0 && cuda.prefetch != NULL && is_managed(to))
        cuda.prefetch((pointer)(uintptr_t)to, bytes, chosen, NULL);
    return code != 0 ? code : cuda.synchronize();
}

static int copy_out(void *to, const void *from, size_t bytes)
{
    return cuda.copy_out(to, (pointer)(uintptr_t)from, bytes);
}

static int look(const void *memory, enum memory_kind *kind)
{
    unsigned type = 0;
    int code = cuda.pointer_attribute(&type, POINTER_MEMORY_TYPE, (pointer)(uintptr_t)memory);
    *kind = is_managed(memory) ? MEMORY_MANAGED : type == TYPE_DEVICE ? MEMORY_DEVICE : MEMORY_HOST;
    return code;
}

static const char *const files[] = {"libcuda.so.1", NULL};
static const char *const asks[] = {"MPIX_Query_cuda_support", NULL};

const struct device_library device_cuda = {
    .kind = "cuda",
    .files = files,
    .kernel_driver = "/sys/module/nvidia/version",
    .asks = asks,
    .mpich_kind = 0,
    .functions = functions,
    .start = start,
    .choose = choose,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .look = look,
};
