/* One element of a buffer, which is a double or a byte. */
#ifndef MPICOST_ELEMENT_H
#define MPICOST_ELEMENT_H

#include "routine.h"

static inline void element_put(const struct exchange *exchange, double *buffer, size_t index, double value)
{
    if (exchange->type == MPI_BYTE)
        ((unsigned char *)buffer)[index] = (unsigned char)value;
    else
        buffer[index] = value;
}

static inline double element_get(const struct exchange *exchange, const double *buffer, size_t index)
{
    return exchange->type == MPI_BYTE ? ((const unsigned char *)buffer)[index] : buffer[index];
}

#endif
