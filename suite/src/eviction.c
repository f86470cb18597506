#define _DEFAULT_SOURCE /* syscall */
#include "eviction.h"

#include <stdbool.h>
#include <stdint.h>

/* An architecture has a finder, an instruction that evicts one line, and a fence. MPICOST_WITHOUT_EVICTION stands in
 * for an architecture that has none. */
#if defined(MPICOST_WITHOUT_EVICTION)

struct eviction eviction_find(void)
{
    return (struct eviction){0};
}

#elif defined(__x86_64__) || defined(__i386__)

#include <cpuid.h>

static const char CLFLUSH[] = "clflush", CLFLUSHOPT[] = "clflushopt";

/* Intel's manual, volume 2A, CPUID: leaf 1 has CLFLUSH in bit 19 of EDX and eighths of its line in bits 15 to 8 of EBX,
 * leaf 7 has CLFLUSHOPT in bit 23 of EBX. AMD's is the same. */
struct eviction eviction_find(void)
{
    unsigned a, b, c, d;
    if (!__get_cpuid(1, &a, &b, &c, &d) || (d >> 19 & 1) == 0)
        return (struct eviction){0};
    struct eviction found = {CLFLUSH, 8 * (size_t)(b >> 8 & 0xff)};
    if (__get_cpuid_count(7, 0, &a, &b, &c, &d) && (b >> 23 & 1) != 0)
        found.instruction = CLFLUSHOPT;
    return found.line > 0 ? found : (struct eviction){0};
}

#define HAS_EVICTION

static void evict_line(const struct eviction *eviction, const char *line)
{
    if (eviction->instruction == CLFLUSHOPT) /* the prefix makes one of the other, whatever the assembler knows */
        __asm__ volatile(".byte 0x66; clflush %0" : : "m"(*line) : "memory");
    else
        __asm__ volatile("clflush %0" : : "m"(*line) : "memory");
}

static void fence(void)
{
    __asm__ volatile("mfence" : : : "memory");
}

#elif defined(__aarch64__)

/* Arm's architecture manual: CTR_EL0 has the logarithm of the smallest data line, in words, in bits 19 to 16. Linux
 * lets programs read it, and clean and invalidate data by address. */
struct eviction eviction_find(void)
{
    uint64_t type;
    __asm__ volatile("mrs %0, ctr_el0" : "=r"(type));
    return (struct eviction){"dc civac", (size_t)4 << (type >> 16 & 0xf)};
}

#define HAS_EVICTION

static void evict_line(const struct eviction *eviction, const char *line)
{
    (void)eviction;
    __asm__ volatile("dc civac, %0" : : "r"(line) : "memory");
}

static void fence(void)
{
    __asm__ volatile("dsb sy" : : : "memory");
}

#elif defined(__powerpc64__)

#include <sys/auxv.h>

struct eviction eviction_find(void)
{
    size_t line = (size_t)getauxval(AT_DCACHEBSIZE);
    return line > 0 ? (struct eviction){"dcbf", line} : (struct eviction){0};
}

#define HAS_EVICTION

static void evict_line(const struct eviction *eviction, const char *line)
{
    (void)eviction;
    __asm__ volatile("dcbf 0, %0" : : "r"(line) : "memory");
}

static void fence(void)
{
    __asm__ volatile("sync" : : : "memory");
}

#elif defined(__riscv) && __riscv_xlen == 64

#include <unistd.h>

/* Linux (Documentation/arch/riscv/hwprobe.rst) tells the block of Zicbom by key 12 where programs may use cbo.flush, and
 * else 0, or -1 in place of the key. */
struct eviction eviction_find(void)
{
    enum { HWPROBE = 258, BLOCK_SIZE = 12 };
    struct {
        int64_t key;
        uint64_t value;
    } pair = {.key = BLOCK_SIZE};
    bool known = syscall(HWPROBE, &pair, 1, 0, NULL, 0) == 0 && pair.key == BLOCK_SIZE;
    size_t line = known ? (size_t)pair.value : 0;
    bool possible = line > 0 && line <= 4096 && (line & (line - 1)) == 0;
    return possible ? (struct eviction){"cbo.flush", line} : (struct eviction){0};
}

#define HAS_EVICTION

static void evict_line(const struct eviction *eviction, const char *line)
{
    (void)eviction;
    __asm__ volatile(".insn i 0x0f, 2, x0, %0, 2" : : "r"(line) : "memory"); /* cbo.flush, which old assemblers lack */
}

static void fence(void)
{
    __asm__ volatile("fence rw, rw" : : : "memory");
}

#else

struct eviction eviction_find(void)
{
    return (struct eviction){0};
}

#endif

#if defined(HAS_EVICTION)

size_t eviction_apply(const struct eviction *eviction, const void *block, size_t bytes)
{
    if (eviction->instruction == NULL || bytes == 0)
        return 0;
    size_t evicted = 0;
    const char *end = (const char *)block + bytes;
    const char *line = (const char *)block - (uintptr_t)block % eviction->line;
    fence(); /* what was written before is in the caches, and goes with them */
    for (; line < end; line += eviction->line, evicted++)
        evict_line(eviction, line);
    fence();
    return evicted;
}

#else

size_t eviction_apply(const struct eviction *eviction, const void *block, size_t bytes)
{
    (void)eviction, (void)block, (void)bytes;
    return 0;
}

#endif
