/* Crypt: a text is enciphered and deciphered by IDEA, in blocks of bytes dealt out among the ranks. Rank 0 sends the plain
 * text, which is timed; the cipher text stays where it is made. `bytes` are those of the text. */
#include "kernel.h"

#include <string.h>

#include "generator.h"

enum { GENERATOR_SEED = 136506717, ROUNDS = 8, KEY_WORDS = 8, SUBKEYS = 6 * ROUNDS + 4, BLOCK_BYTES = 8, WORDS = 4, ROTATION = 25 };
enum { PLAIN, CIPHER, DECIPHERED, HOME };

/* That the deciphered text is the plain one is also true of a cipher that does nothing: the cipher text is known, too. */
static const struct {
    int bytes;
    uint32_t crc; /* CRC-32 of the cipher text */
} known[] = {{3000000, 0xbf20e52f}, {20000000, 0xa0786e01}, {50000000, 0xe3d2612a}};

/* Blocks of IDEA: the text has so many as it has doubles. */
static struct part own_part(const struct exchange *x, int rank)
{
    return part_of(x->count, blocks_needed(x->count, x->processes), rank);
}

/* Rank 0 has room for all of each text, of which its part is the beginning. */
static int room_of(const struct exchange *x)
{
    return x->rank == 0 ? x->count : own_part(x, x->rank).count;
}

uint64_t crypt_memory(const struct exchange *x)
{
    return 3 * (uint64_t)room_of(x);
}

static unsigned char *text_at(const struct exchange *x, int text, int block)
{
    return (unsigned char *)(x->send + (ptrdiff_t)text * room_of(x) + block);
}

static unsigned char plain_byte(int64_t index)
{
    return (unsigned char)(index & 0xff);
}

static void prepare(const struct exchange *x)
{
    memset(x->send, 0, (size_t)crypt_memory(x) * sizeof *x->send);
    for (int i = 0; x->rank == 0 && i < x->count * BLOCK_BYTES; i++)
        text_at(x, PLAIN, 0)[i] = plain_byte(i);
}

/* Product modulo 2^16 + 1, where 0 stands for 2^16. */
static uint16_t multiply(uint16_t a, uint16_t b)
{
    const uint64_t modulus = 0x10001;
    return (uint16_t)((a != 0 ? a : modulus - 1) * (b != 0 ? b : modulus - 1) % modulus);
}

/* The number whose product with `a` is 1: a^(2^16 - 1), since 2^16 + 1 is prime. */
static uint16_t inverse(uint16_t a)
{
    uint16_t power = 1;
    for (int bit = 0; bit < 16; bit++)
        power = multiply(multiply(power, power), a);
    return power;
}

static uint16_t negative(uint16_t a)
{
    return (uint16_t)(0x10000 - a);
}

/* The key, and what comes of turning its 128 bits by 25 again and again. */
static void make_subkeys(uint16_t subkeys[SUBKEYS])
{
    struct generator generator = generator_open(GENERATOR_SEED);
    uint16_t key[KEY_WORDS], turned[KEY_WORDS];
    for (int i = 0; i < KEY_WORDS; i++)
        key[i] = (uint16_t)generator_int(&generator);
    for (int i = 0; i < SUBKEYS; i++) {
        if (i > 0 && i % KEY_WORDS == 0) {
            for (int j = 0; j < KEY_WORDS; j++) {
                uint32_t pair = (uint32_t)key[(j + ROTATION / 16) % KEY_WORDS] << 16 | key[(j + ROTATION / 16 + 1) % KEY_WORDS];
                turned[j] = (uint16_t)(pair >> (16 - ROTATION % 16));
            }
            memcpy(key, turned, sizeof key);
        }
        subkeys[i] = key[i % KEY_WORDS];
    }
}

/* Those that undo what these do: in reverse, each by its inverse. */
static void invert_subkeys(uint16_t inverted[SUBKEYS], const uint16_t subkeys[SUBKEYS])
{
    for (int round = 0; round <= ROUNDS; round++) {
        const uint16_t *from = subkeys + 6 * (ROUNDS - round);
        uint16_t *to = inverted + 6 * round;
        bool swapped = round > 0 && round < ROUNDS;
        to[0] = inverse(from[0]);
        to[1] = negative(from[swapped ? 2 : 1]);
        to[2] = negative(from[swapped ? 1 : 2]);
        to[3] = inverse(from[3]);
        if (round < ROUNDS)
            memcpy(to + 4, from - 2, 2 * sizeof *to);
    }
}

static void apply_round(uint16_t w[WORDS], const uint16_t *k)
{
    uint16_t a = multiply(w[0], k[0]), b = (uint16_t)(w[1] + k[1]), c = (uint16_t)(w[2] + k[2]), d = multiply(w[3], k[3]);
    uint16_t e = multiply(a ^ c, k[4]);
    uint16_t f = multiply((uint16_t)((b ^ d) + e), k[5]);
    e = (uint16_t)(e + f);
    w[0] = a ^ f;
    w[1] = c ^ f;
    w[2] = b ^ e;
    w[3] = d ^ e;
}

/* Words of two bytes, the lower first. */
static void apply(unsigned char *to, const unsigned char *from, int blocks, const uint16_t subkeys[SUBKEYS])
{
    const uint16_t *last = subkeys + 6 * ROUNDS;
    for (int block = 0; block < blocks; block++, to += BLOCK_BYTES, from += BLOCK_BYTES) {
        uint16_t w[WORDS];
        for (int i = 0; i < WORDS; i++)
            w[i] = (uint16_t)(from[2 * i] | from[2 * i + 1] << 8);
        for (int round = 0; round < ROUNDS; round++)
            apply_round(w, subkeys + 6 * round);
        const uint16_t out[WORDS] = {multiply(w[0], last[0]), (uint16_t)(w[2] + last[1]), (uint16_t)(w[1] + last[2]),
                                     multiply(w[3], last[3])};
        for (int i = 0; i < WORDS; i++) {
            to[2 * i] = (unsigned char)(out[i] & 0xff);
            to[2 * i + 1] = (unsigned char)(out[i] >> 8);
        }
    }
}

/* One rank after the other has its part of the plain text. */
static void send_plain(const struct exchange *x)
{
    for (int rank = 1; x->rank == 0 && rank < x->processes; rank++) {
        struct part part = own_part(x, rank);
        MPI_Ssend(text_at(x, PLAIN, part.first), part.count * BLOCK_BYTES, MPI_BYTE, rank, PLAIN, x->comm);
    }
    if (x->rank > 0)
        MPI_Recv(text_at(x, PLAIN, 0), own_part(x, x->rank).count * BLOCK_BYTES, MPI_BYTE, 0, PLAIN, x->comm, MPI_STATUS_IGNORE);
}

void crypt_compute(const struct exchange *x)
{
    uint16_t subkeys[SUBKEYS], inverted[SUBKEYS];
    int blocks = own_part(x, x->rank).count;
    make_subkeys(subkeys);
    invert_subkeys(inverted, subkeys);
    send_plain(x);
    apply(text_at(x, CIPHER, 0), text_at(x, PLAIN, 0), blocks, subkeys);
    apply(text_at(x, DECIPHERED, 0), text_at(x, CIPHER, 0), blocks, inverted);
    MPI_Barrier(x->comm);
}

static void return_text(const struct exchange *x, int text)
{
    if (x->rank > 0)
        MPI_Send(text_at(x, text, 0), own_part(x, x->rank).count * BLOCK_BYTES, MPI_BYTE, 0, HOME, x->comm);
    for (int rank = 1; x->rank == 0 && rank < x->processes; rank++) {
        struct part part = own_part(x, rank);
        MPI_Recv(text_at(x, text, part.first), part.count * BLOCK_BYTES, MPI_BYTE, rank, HOME, x->comm, MPI_STATUS_IGNORE);
    }
    MPI_Barrier(x->comm);
}

void crypt_text(const struct exchange *x)
{
    crypt_compute(x);
    return_text(x, DECIPHERED);
}

static uint32_t checksum(const unsigned char *text, int bytes)
{
    static uint32_t table[256];
    uint32_t crc = 0xffffffff;
    for (uint32_t i = 0; table[255] == 0 && i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? 0xedb88320 : 0);
    }
    for (int i = 0; i < bytes; i++)
        crc = crc >> 8 ^ table[(crc ^ text[i]) & 0xff];
    return ~crc;
}

static struct finding check(const struct exchange *x)
{
    int bytes = x->count * BLOCK_BYTES;
    if (x->operation == crypt_compute)
        return_text(x, DECIPHERED);
    return_text(x, CIPHER);
    if (x->rank > 0)
        return (struct finding){.wrong = false};
    for (int i = 0; i < bytes; i++)
        if (text_at(x, DECIPHERED, 0)[i] != plain_byte(i))
            return finding_of(i, text_at(x, DECIPHERED, 0)[i], plain_byte(i));
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].bytes == bytes)
            return finding_of(0, checksum(text_at(x, CIPHER, 0), bytes), known[i].crc);
    return (struct finding){.wrong = true};
}

const struct kernel crypt_kernel = {prepare, check};
