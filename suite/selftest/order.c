#include "order.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"

enum { FRACTION_MOST = 100 };

const char *const kind_names[KINDS] = {"MPI_Barrier",  "MPI_Bcast",  "MPI_Scatter",   "MPI_Gather",
                                       "MPI_Allgather", "MPI_Alltoall", "MPI_Reduce", "MPI_Allreduce",
                                       "MPI_Scan",     "MPI_Send",   "MPI_Recv",      "MPI_Sendrecv"};

/* A number from 0 to `most`; what the variable has already if it is not set. */
static bool read_number(const char *name, double most, double *value)
{
    const char *text = getenv(name);
    char *end;
    if (text == NULL)
        return true;
    *value = strtod(text, &end);
    return end != text && *end == '\0' && isfinite(*value) && *value >= 0 && *value <= most;
}

static bool read_share(const char *name, double most, double *value)
{
    return read_number(name, most, value) && *value > 0;
}

static bool read_bytes(const char *name, uint64_t *value)
{
    const char *text = getenv(name);
    return text == NULL || number_parse(text, value);
}

static bool read_rank(const char *name, int64_t *rank)
{
    const char *text = getenv(name);
    uint64_t value = 0;
    if (text == NULL)
        return true;
    bool well = number_parse(text, &value);
    *rank = (int64_t)value;
    return well;
}

static bool add_kind(struct order *order, const char *name)
{
    bool all = strcmp(name, "all") == 0, known = all;
    for (int kind = 0; kind < KINDS; kind++)
        if (all || strcmp(name, kind_names[kind]) == 0)
            known = order->kinds[kind] = true;
    return known;
}

static bool read_kinds(const char *name, struct order *order)
{
    const char *rest = getenv(name);
    char entry[32];
    bool well = rest != NULL;
    while (well && list_next(&rest, ',', entry, sizeof entry))
        well = add_kind(order, entry);
    return well;
}

bool order_read(struct order *order, char *problem, size_t size)
{
    *order = (struct order){.most = UINT64_MAX, .rank = -1, .launches = 1, .calls = 1};
    const char *wrong = NULL;
    if (!read_share("PLUMBLINE_DELAY_FRACTION", FRACTION_MOST, &order->fraction))
        wrong = "PLUMBLINE_DELAY_FRACTION: must be a number above 0 and up to 100";
    else if (!read_kinds("PLUMBLINE_DELAY_ROUTINES", order))
        wrong = "PLUMBLINE_DELAY_ROUTINES: must be names of MPI functions that can be delayed, or all";
    else if (!read_bytes("PLUMBLINE_DELAY_LEAST", &order->least))
        wrong = "PLUMBLINE_DELAY_LEAST: must be a whole number of bytes";
    else if (!read_bytes("PLUMBLINE_DELAY_MOST", &order->most))
        wrong = "PLUMBLINE_DELAY_MOST: must be a whole number of bytes";
    else if (!read_rank("PLUMBLINE_DELAY_RANK", &order->rank))
        wrong = "PLUMBLINE_DELAY_RANK: must be a rank";
    else if (!read_number("PLUMBLINE_DELAY_LAUNCHES", 1, &order->launches))
        wrong = "PLUMBLINE_DELAY_LAUNCHES: must be a number from 0 to 1";
    else if (!read_share("PLUMBLINE_DELAY_CALLS", 1, &order->calls))
        wrong = "PLUMBLINE_DELAY_CALLS: must be a number above 0 and up to 1";
    if (wrong != NULL)
        snprintf(problem, size, "%s", wrong);
    return wrong == NULL;
}
