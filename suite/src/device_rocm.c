/* AMD's runtime: the functions and numbers of hip_runtime_api.h that are used here, by HIP's reference. */
#include "device.h"

/* What hipPointerGetAttributes fills, as far as it is read; the rest is room. */
struct attributes {
    int type;
    int device;
    void *device_pointer;
    void *host_pointer;
    int managed;
    unsigned flags;
    char room[256];
};

enum { MEMORY_ATTACH_GLOBAL = 1 };
enum { COPY_IN = 1, COPY_OUT = 2 };
enum { ATTRIBUTE_ECC_ENABLED = 0, ATTRIBUTE_CLOCK_RATE = 5 };

static struct {
    int (*init)(unsigned);
    int (*runtime_version)(int *);
    int (*device_count)(int *);
    int (*set_device)(int);
    int (*name)(char *, int, int);
    int (*bus)(char *, int, int);
    int (*attribute)(int *, int, int);
    int (*synchronize)(void);
    int (*allocate)(void **, size_t);
    int (*allocate_managed)(void **, size_t, unsigned);
    int (*release)(void *);
    int (*copy)(void *, const void *, size_t, int);
    int (*attributes)(struct attributes *, const void *);
    /* may be missing */
    int (*uuid)(unsigned char *, int);
    int (*prefetch)(const void *, size_t, int, void *);
} hip;

static int chosen;

static const struct device_function functions[] = {
    {&hip.init, "hipInit", true},
    {&hip.runtime_version, "hipRuntimeGetVersion", true},
    {&hip.device_count, "hipGetDeviceCount", true},
    {&hip.set_device, "hipSetDevice", true},
    {&hip.name, "hipDeviceGetName", true},
    {&hip.bus, "hipDeviceGetPCIBusId", true},
    {&hip.attribute, "hipDeviceGetAttribute", true},
    {&hip.synchronize, "hipDeviceSynchronize", true},
    {&hip.allocate, "hipMalloc", true},
    {&hip.allocate_managed, "hipMallocManaged", true},
    {&hip.release, "hipFree", true},
    {&hip.copy, "hipMemcpy", true},
    {&hip.attributes, "hipPointerGetAttributes", true},
    {&hip.uuid, "hipDeviceGetUuid", false},
    {&hip.prefetch, "hipMemPrefetchAsync", false},
    {NULL, NULL, false},
};

static int start(int *count, int *version)
{
    int code = hip.init(0);
    code = code != 0 ? code : hip.runtime_version(version);
    return code != 0 ? code : hip.device_count(count);
}

static int64_t attribute_of(int attribute)
{
    int value;
    return hip.attribute(&value, attribute, chosen) == 0 ? value : DEVICE_UNKNOWN;
}

static int choose(int index, struct device_facts *facts)
{
    chosen = index;
    int code = hip.set_device(index);
    code = code != 0 ? code : hip.name(facts->name, sizeof facts->name, index);
    if (code != 0)
        return code;
    if (hip.bus(facts->bus, sizeof facts->bus, index) != 0)
        facts->bus[0] = '\0';
    facts->has_uuid = hip.uuid != NULL && hip.uuid(facts->uuid, index) == 0;
    facts->ecc = attribute_of(ATTRIBUTE_ECC_ENABLED);
    facts->clock = attribute_of(ATTRIBUTE_CLOCK_RATE);
    facts->memory_clock = DEVICE_UNKNOWN;
    return 0;
}

static int allocate(enum memory_kind kind, size_t bytes, void **memory)
{
    return kind == MEMORY_MANAGED ? hip.allocate_managed(memory, bytes, MEMORY_ATTACH_GLOBAL)
                                  : hip.allocate(memory, bytes);
}

static int release(void *memory)
{
    return hip.release(memory);
}

/* Versions differ in the numbers of the types, so that only what is managed and what has an address on the host are
 * looked at. */
static int look(const void *memory, enum memory_kind *kind)
{
    struct attributes found = {.host_pointer = NULL};
    int code = hip.attributes(&found, memory);
    *kind = found.managed != 0                                           ? MEMORY_MANAGED
            : found.device_pointer != NULL && found.host_pointer == NULL ? MEMORY_DEVICE
                                                                         : MEMORY_HOST;
    return code;
}

/* Managed memory lies on the GPU when the copy is over, where the runtime can move it. */
static int copy_in(void *to, const void *from, size_t bytes)
{
    enum memory_kind kind;
    int code = hip.copy(to, from, bytes, COPY_IN);
    if (code == 0 && hip.prefetch != NULL && look(to, &kind) == 0 && kind == MEMORY_MANAGED)
        hip.prefetch(to, bytes, chosen, NULL);
    return code != 0 ? code : hip.synchronize();
}

static int copy_out(void *to, const void *from, size_t bytes)
{
    return hip.copy(to, from, bytes, COPY_OUT);
}

static const char *const files[] = {"libamdhip64.so", "libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5", NULL};
static const char *const asks[] = {"MPIX_Query_rocm_support", "MPIX_Query_hip_support", NULL};

const struct device_library device_rocm = {
    .kind = "rocm",
    .files = files,
    .kernel_driver = "/sys/module/amdgpu/version",
    .asks = asks,
    .mpich_kind = 2,
    .functions = functions,
    .start = start,
    .choose = choose,
    .allocate = allocate,
    .release = release,
    .copy_in = copy_in,
    .copy_out = copy_out,
    .look = look,
};
