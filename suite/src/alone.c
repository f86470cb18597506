#include "alone.h"

#include <string.h>

#include "clock.h"

enum { DOUBLINGS = 16, MULTIPLICATIONS = 1 << DOUBLINGS, READINGS = 1024, MANTISSA = 53 };

/* Knuth's linear congruential generator (MMIX). Read anew for each step, because a compiler that knew the factor
 * might make two steps one. */
static const volatile uint64_t factor = 6364136223846793005u;
static const uint64_t increment = 1442695040888963407u;

/* A whole number that a double holds exactly. */
static double leading_bits(uint64_t state)
{
    return (double)(state >> (64 - MANTISSA));
}

void alone_compute(const struct exchange *x)
{
    for (int i = 0; i < x->count; i++) {
        uint64_t state = (uint64_t)x->send[i];
        for (int step = 0; step < MULTIPLICATIONS; step++)
            state = factor * state + increment;
        x->receive[i] = leading_bits(state);
    }
}

/* Another way to the same number: two equal steps f s + c are one step, (f f) s + (f c + c). */
double alone_computed(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    uint64_t f = factor, c = increment;
    for (int i = 0; i < DOUBLINGS; i++) {
        c = f * c + c;
        f = f * f;
    }
    return leading_bits(f * (uint64_t)pattern_value(pattern, x->rank, index) + c);
}

void alone_copy(const struct exchange *x)
{
    memcpy(x->receive, x->send, (size_t)x->count * sizeof *x->send);
}

double alone_copied(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    return pattern_value(pattern, x->rank, index);
}

/* Leaves how many readings went forward, which must be all. */
void alone_read_clock(const struct exchange *x)
{
    for (int i = 0; i < x->count; i++) {
        int forward = 0;
        int64_t last = clock_now();
        for (int reading = 0; reading < READINGS; reading++) {
            int64_t now = clock_now();
            forward += now >= last;
            last = now;
        }
        x->receive[i] = forward;
    }
}

double alone_clock_read(const struct pattern *pattern, const struct exchange *x, size_t index)
{
    (void)pattern, (void)x, (void)index;
    return READINGS;
}
