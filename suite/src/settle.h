/* Work before the first case: processors that were idle are slow at first. */
#ifndef MPICOST_SETTLE_H
#define MPICOST_SETTLE_H

#include "control.h"

/* Keeps all ranks busy, and in touch with each other, until no rank's processor speeds up any more, for at most
 * so many seconds of rank 0's clock; looks every 50 ms. Collective. */
void settle(const struct control *control, double most);

#endif
