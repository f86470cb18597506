/* Where wrong data was received first, and by whom; or who left a barrier too early. */
#ifndef MPICOST_WRONG_DATA_H
#define MPICOST_WRONG_DATA_H

#include "buffers.h"
#include "control.h"
#include "json.h"
#include "plan.h"

enum moment { MOMENT_BEFORE, MOMENT_TIMED, MOMENT_AFTER };

struct wrong_data {
    int64_t rank;  /* that received it; -1: nobody received any */
    int64_t trial; /* counted from 1, of those that are timed; 0: before or after them */
    enum moment moment;
    struct finding finding;
};

/* Leaves on rank 0 what the lowest rank found that found anything. Along the tree of control.h; where all is well,
 * messages are as long as those of control_maximum. Collective. */
void wrong_data_collect(struct wrong_data *wrong, const struct control *control);

/* Names it on standard error. */
void wrong_data_print(const struct wrong_data *wrong, const struct item *item, int peer);

/* Writes the key `wrong`, if there is any. */
void wrong_data_record(struct json *json, const struct wrong_data *wrong);

#endif
