/* A file system that takes data and loses it: fsync fails, as it does when a network file system finds
 * no room. Loaded in front of the C library. */
#include <errno.h>

int fsync(int descriptor)
{
    (void)descriptor;
    errno = ENOSPC;
    return -1;
}
