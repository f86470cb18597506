/* The `case` and the `end` record of the output. */
#ifndef MPICOST_RECORDS_H
#define MPICOST_RECORDS_H

#include "json.h"
#include "measurement.h"

/* Totals over all cases. */
struct totals {
    size_t cases;
    bool correct;    /* all data received was right */
    int64_t elapsed; /* ns since the start of the program */
    int64_t timed;   /* ns between stamps */
    int64_t memory;  /* bytes allocated at the peak, on the rank with most */
    int64_t clock_deviation; /* ns; see struct clock */
    int64_t flush_sum; /* see flush_sum(); the smallest of all ranks */
    int64_t evicted_lines; /* before trials and in the proof; the fewest of all ranks */
};

/* Rank 0 writes the record, for which the ranks of a tournament send it their times. Collective. */
void record_case(struct json *json, const struct item *item, int peer, struct bench *bench,
                 const struct measurement *measurement);

/* On rank 0, while all others call lateness_answer. */
void record_end(struct json *json, const struct bench *bench, const struct totals *totals);

#endif
