#include "line.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

void line_open(struct line *line)
{
    *line = (struct line){0};
    line->json.file = open_memstream(&line->text, &line->bytes);
    if (line->json.file == NULL)
        abort();
}

static bool write_all(int descriptor, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t written = write(descriptor, text, bytes);
        if (written < 0 && errno != EINTR)
            return false;
        text += written > 0 ? written : 0;
        bytes -= written > 0 ? (size_t)written : 0;
    }
    /* EINVAL and ENOTSUP: a pipe or a device, which has no storage to wait for */
    return fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP;
}

static bool append(const char *path, const char *text, size_t bytes)
{
    int descriptor = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    if (descriptor < 0)
        return false;
    if (write_all(descriptor, text, bytes))
        return close(descriptor) == 0;
    int reason = errno;
    close(descriptor);
    errno = reason;
    return false;
}

bool line_append(struct line *line, const char *path)
{
    bool well = fclose(line->json.file) == 0 && append(path, line->text, line->bytes);
    int reason = errno;
    free(line->text);
    errno = reason;
    return well;
}
