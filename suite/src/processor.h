/* What the kernel calls the processor. site_configs/topology/machine.py has the same rules. */
#ifndef MPICOST_PROCESSOR_H
#define MPICOST_PROCESSOR_H

#include <stddef.h>

#define PROCESSOR_FILE "/proc/cpuinfo"

enum { PROCESSOR_LINE = 512 }; /* room for a name; what is longer is cut */

/* The name in a file such as /proc/cpuinfo: the model's; where there is none, what POWER, ARM or RISC-V tell of the
 * first processor, as "CPU implementer 0x41, CPU architecture 8"; else "unknown" and the kind of machine. */
void processor_read(const char *path, char *name, size_t size);

#endif
