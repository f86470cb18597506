/* What the kernel tells of a process's own TCP connections: an MPI need not say that messages go through them. */
#ifndef MPICOST_SOCKETS_H
#define MPICOST_SOCKETS_H

#include <stdint.h>

/* Packets with data that the connections of this process have sent so far; -1 if the kernel does not tell. */
int64_t sockets_packets(void);

#endif
