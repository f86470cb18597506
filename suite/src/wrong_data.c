#include "wrong_data.h"

#include <math.h>
#include <stdio.h>

#include "clock.h"
#include "outcome.h"

void wrong_data_collect(struct wrong_data *wrong, const struct control *control)
{
    int limit = control_distance(control);
    for (int distance = 1; distance < limit && control->rank + distance < control->size; distance *= 2) {
        struct wrong_data theirs;
        control_receive(control, control->rank + distance, &theirs, sizeof theirs);
        if (wrong->rank < 0 && theirs.rank >= 0)
            *wrong = theirs;
    }
    if (control->rank != 0)
        control_send(control, control->rank - limit, wrong, wrong->rank < 0 ? sizeof wrong->rank : sizeof *wrong);
}

/* What is wrong, from the rank on. */
static void describe(char *text, size_t size, const struct wrong_data *wrong)
{
    const struct finding *finding = &wrong->finding;
    if (finding->early > 0)
        snprintf(text, size, "rank %lld left %.9f s before the last had come", (long long)wrong->rank,
                 seconds(finding->early));
    else
        snprintf(text, size, "rank %lld %sindex %lld: %.17g instead of %.17g", (long long)wrong->rank,
                 finding->sent ? "send buffer " : "", (long long)finding->index, finding->received, finding->expected);
}

void wrong_data_print(const struct wrong_data *wrong, const struct item *item, int peer)
{
    char text[400], what[200], when[48];
    describe(what, sizeof what, wrong);
    if (wrong->moment == MOMENT_TIMED)
        snprintf(when, sizeof when, "in trial %lld", (long long)wrong->trial);
    else
        snprintf(when, sizeof when, "%s timing", wrong->moment == MOMENT_BEFORE ? "before" : "after");
    snprintf(text, sizeof text, "wrong data: %s peer %d bytes %llu: %s, %s", item->name, peer,
             (unsigned long long)item->bytes, what, when);
    print_error(text);
}

/* Readers take no number beyond what products of two can be made of. */
static double recordable(double number)
{
    return fabs(number) <= 1e150 ? number : NAN;
}

void wrong_data_record(struct json *json, const struct wrong_data *wrong)
{
    static const char *const moments[] = {"before", "timed", "after"};
    const struct finding *finding = &wrong->finding;
    if (wrong->rank < 0)
        return;
    json_key(json, "wrong");
    json_open(json, '{');
    json_key_integer(json, "rank", wrong->rank);
    if (finding->early > 0) {
        json_key_number(json, "early", seconds(finding->early));
    } else {
        if (finding->sent)
            json_key_string(json, "buffer", "send");
        json_key_integer(json, "index", finding->index);
        json_key_number(json, "received", recordable(finding->received));
        json_key_number(json, "expected", recordable(finding->expected));
    }
    json_key_string(json, "moment", moments[wrong->moment]);
    json_key_integer(json, "trial", wrong->trial);
    json_close(json, '}');
}
