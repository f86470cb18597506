#include "sockets.h"

#include <dirent.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>

int64_t sockets_packets(void)
{
    DIR *files = opendir("/proc/self/fd");
    int64_t packets = 0;
    if (files == NULL)
        return -1;
    for (struct dirent *file = readdir(files); file != NULL; file = readdir(files)) {
        struct tcp_info told = {0};
        socklen_t size = sizeof told;
        int number = atoi(file->d_name);
        if (file->d_name[0] == '.' || getsockopt(number, IPPROTO_TCP, TCP_INFO, &told, &size) != 0)
            continue;
        if (size < offsetof(struct tcp_info, tcpi_data_segs_out) + sizeof told.tcpi_data_segs_out) {
            packets = -1; /* a kernel before 4.6 */
            break;
        }
        packets += told.tcpi_data_segs_out;
    }
    closedir(files);
    return packets;
}
