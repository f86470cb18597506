#include "offset.h"

int64_t offset_expected(const struct offset *first, const struct offset *last, int64_t now)
{
    int64_t change = last->value - first->value, passed = last->when - first->when;
    int64_t doubt = first->error + last->error;
    if (passed <= 0 || (-2 * doubt <= change && change <= 2 * doubt))
        return last->value;
    double rate = (double)change / (double)passed;
    return last->value + (int64_t)(rate * (double)(now - last->when));
}
