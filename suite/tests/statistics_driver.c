/* Reads trials from standard input, "dropped resolution" and then one "time late" per line, and prints
 * their summary, one value per line, or "none". */
#include <stdio.h>

#include "statistics.h"

enum { MOST = 100000 };

static double trials[MOST], work[2 * MOST];
static unsigned char late[MOST];

int main(void)
{
    size_t dropped, count = 0;
    double resolution;
    unsigned int flag;
    struct summary s;
    if (scanf("%zu %lf", &dropped, &resolution) != 2)
        return 2;
    while (count < MOST && scanf("%lf %u", &trials[count], &flag) == 2)
        late[count++] = flag != 0;
    if (!statistics_summarise(&s, trials, late, count, dropped, resolution, work)) {
        puts("none");
        return 0;
    }
    printf("%.17g\n%.17g\n%.17g\n%.17g\n%.17g\n%.17g\n%.17g\n", s.headline, s.steady, s.median, s.minimum, s.p90,
           s.p99, s.standard_error);
    printf("%zu\n%zu\n%zu\n%d\n%d\n", s.kept, s.candidates, s.removed, s.filter_saturated, s.bimodal);
    return 0;
}
