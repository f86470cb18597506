/* How the program ends: the exit code, and the one line that says why. */
#ifndef MPICOST_OUTCOME_H
#define MPICOST_OUTCOME_H

#include <stdbool.h>

#include "control.h"

enum exit_code {
    EXIT_ALL_WELL = 0,
    EXIT_WRONG_DATA = 1,
    EXIT_USAGE = 2,    /* wrong use, or a size that does not fit */
    EXIT_OUTPUT = 3,   /* the results could not be written */
    EXIT_NO_TRIALS = 4 /* every trial of a case missed its start window */
};

struct outcome {
    enum exit_code code;
    char text[512];
};

/* Sets code and text and returns false, so that a check can end in `return outcome_fail(...)`. */
bool outcome_fail(struct outcome *outcome, enum exit_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* True on every rank if no rank has failed. Otherwise rank 0 prints the text of the lowest rank that
 * has, on one line of standard error, and every rank takes over its code. Collective. */
bool outcome_agree(struct outcome *outcome, const struct control *control);

/* Writes one line of mpicost's to standard error. */
void print_error(const char *text);

#endif
