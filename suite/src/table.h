/* The table on standard output, for people: times in microseconds. */
#ifndef MPICOST_TABLE_H
#define MPICOST_TABLE_H

#include "measurement.h"
#include "plan.h"

void table_head(const struct bench *bench, const struct plan *plan);
void table_row(const struct item *item, int peer, int processes, const struct measurement *measurement);

#endif
