#include "pattern.h"

#include <string.h>

#include "splitmix.h"

/* SUMS and ORDER: element i of rank r is base + key + step * ((r + shift) mod p), with base, step > 0 and shift drawn
 * from hashes of seed and i. Ranks differ in every element, and which rank holds the least and the greatest value changes
 * from element to element. The three terms are below 2^50, so that together they are a mantissa. Of SUMS they are below
 * 2^50 / addends, and a constant is added, by which the sum of all addends is from 2^52 to 2^53. */
struct terms {
    int64_t base, step, shift;
};

enum { TERM = 50, MANTISSA = 52, TOP = 62, BYTES = 255 };

static const uint64_t ONE = UINT64_C(1), APART = 0xd1342543de82ef95u, LOWEST = 0x0101010101010101u;

/* Bits by which `count` differ. */
static int bits_of(int count)
{
    int bits = 0;
    while (count > 1 << bits)
        bits++;
    return bits;
}

static int term_bits(const struct pattern *pattern)
{
    return pattern->data == DATA_SUMS ? TERM - bits_of(pattern->addends) : TERM;
}

static int64_t least_of(const struct pattern *pattern)
{
    return pattern->data == DATA_SUMS ? (INT64_C(1) << MANTISSA) / pattern->addends + 1 : 0;
}

static struct terms terms_at(const struct pattern *pattern, size_t index)
{
    uint64_t hash = splitmix_at(pattern->seed, (uint64_t)index), other = hash * APART;
    uint64_t shift = ((other >> 32) * (uint64_t)pattern->processes) >> 32;
    int bits = term_bits(pattern), step = bits - bits_of(pattern->processes);
    return (struct terms){
        .base = least_of(pattern) + (int64_t)(hash >> (64 - bits)) + (int64_t)pattern->key,
        .step = 1 + (int64_t)((hash ^ other) & ((ONE << step) - 1)),
        .shift = (int64_t)shift,
    };
}

static double from_bits(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

/* The number, or that of which it is the mantissa: the order is the same. */
static double number(const struct pattern *pattern, int64_t value)
{
    return pattern->data == DATA_ORDER ? from_bits(UINT64_C(1023) << MANTISSA | (uint64_t)value) : (double)value;
}

/* The bits with the two below the highest one of the exponent set to `pair`. */
static uint64_t with_pair(uint64_t bits, uint64_t pair)
{
    return (bits & ~(UINT64_C(3) << (TOP - 2))) | (pair & 1) * (UINT64_C(3) << (TOP - 2));
}

/* The two bits below the highest one of the exponent are others than that: from 2^-255 to 2^257. */
static uint64_t bits_at(const struct pattern *pattern, int rank, size_t index)
{
    uint64_t bits = splitmix_at(pattern->seed + (uint64_t)rank * APART, (uint64_t)index);
    return with_pair(bits, ~bits >> TOP) ^ pattern->key;
}

/* What this turn adds to byte `index`, modulo BYTES. */
static unsigned key_byte(const struct pattern *pattern, size_t index)
{
    return (unsigned)(pattern->key >> 8 * (index % sizeof pattern->key) & 0xff);
}

static unsigned char byte_at(const struct pattern *pattern, int rank, size_t index)
{
    uint64_t bits = splitmix_at(pattern->seed + (uint64_t)rank * APART, (uint64_t)index);
    return (unsigned char)((bits % BYTES + key_byte(pattern, index)) % BYTES);
}

struct pattern pattern_open(enum data data, uint64_t seed, int processes, int addends)
{
    int most = addends > processes ? addends : processes;
    return (struct pattern){.data = data, .seed = seed, .processes = processes, .addends = most};
}

struct pattern pattern_turn(const struct pattern *pattern, uint64_t turn)
{
    struct pattern next = *pattern;
    uint64_t key = splitmix_at(~pattern->seed, turn);
    if (pattern->data == DATA_BYTES) /* in every byte one bit that changes with each turn */
        next.key = (key & 0x7e * LOWEST) | (turn % 2 * LOWEST);
    else if (pattern->data == DATA_BITS) /* all three bits of the exponent change, or none */
        next.key = with_pair(key, key >> TOP);
    else
        next.key = key >> (64 - term_bits(pattern));
    return next;
}

static void raise_bytes(const struct pattern *from, const struct pattern *to, unsigned char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i++)
        bytes[i] = (unsigned char)((bytes[i] + BYTES + key_byte(to, i) - key_byte(from, i)) % BYTES);
}

static void flip(uint64_t flips, uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] ^= flips;
}

static void raise_words(uint64_t more, uint64_t *words, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] += more;
}

void pattern_raise(double more, double *numbers, size_t count)
{
    for (size_t i = 0; i < count; i++)
        numbers[i] += more;
}

void pattern_renew(const struct pattern *from, const struct pattern *to, void *elements, size_t count)
{
    if (from->data == DATA_BYTES)
        raise_bytes(from, to, elements, count);
    else if (from->data == DATA_BITS)
        flip(from->key ^ to->key, elements, count);
    else if (from->data == DATA_ORDER)
        raise_words(to->key - from->key, elements, count);
    else
        pattern_raise((double)to->key - (double)from->key, elements, count);
}

double pattern_value(const struct pattern *pattern, int rank, size_t index)
{
    if (pattern->data == DATA_BYTES)
        return byte_at(pattern, rank, index);
    if (pattern->data == DATA_BITS)
        return from_bits(bits_at(pattern, rank, index));
    struct terms t = terms_at(pattern, index);
    int64_t turn = rank + t.shift;
    if (turn >= pattern->processes)
        turn -= pattern->processes;
    return number(pattern, t.base + t.step * turn);
}

double pattern_sum(const struct pattern *pattern, int ranks, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t n = ranks, p = pattern->processes;
    int64_t wrapped = t.shift + n - p; /* how many of the ranks have passed p */
    int64_t turns = n * t.shift + n * (n - 1) / 2 - (wrapped > 0 ? wrapped * p : 0);
    return (double)(n * t.base + t.step * turns);
}

double pattern_min(const struct pattern *pattern, int ranks, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t least = t.shift + ranks > pattern->processes ? 0 : t.shift;
    return number(pattern, t.base + t.step * least);
}

double pattern_max(const struct pattern *pattern, int ranks, size_t index)
{
    struct terms t = terms_at(pattern, index);
    int64_t last = t.shift + ranks - 1;
    int64_t greatest = last < pattern->processes ? last : pattern->processes - 1;
    return number(pattern, t.base + t.step * greatest);
}
