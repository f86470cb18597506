/* For each line of seven numbers on standard input, when, value and error of the first offset and of the last, and
 * now: the offset expected. */
#include <inttypes.h>
#include <stdio.h>

#include "offset.h"

int main(void)
{
    struct offset a, b;
    int64_t now;
    while (scanf("%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64 "%" SCNd64, &a.when, &a.value,
                 &a.error, &b.when, &b.value, &b.error, &now) == 7)
        printf("%" PRId64 "\n", offset_expected(&a, &b, now));
    return 0;
}
