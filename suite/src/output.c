#include "output.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

static bool fail(const struct output *output, struct outcome *outcome)
{
    return outcome_fail(outcome, EXIT_OUTPUT, "cannot write %s: %s", output->path, strerror(errno));
}

bool output_open(struct output *output, const char *path, int rank, struct outcome *outcome)
{
    *output = (struct output){.path = path};
    if (path == NULL || rank != 0)
        return true;
    output->json.file = fopen(path, "w");
    return output->json.file != NULL || fail(output, outcome);
}

bool output_flush(struct output *output, struct outcome *outcome)
{
    if (output->json.file == NULL)
        return true;
    if (fflush(output->json.file) != 0 || ferror(output->json.file))
        return fail(output, outcome);
    return true;
}

bool output_sync(struct output *output, struct outcome *outcome)
{
    if (output->json.file == NULL)
        return true;
    if (!output_flush(output, outcome))
        return false;
    /* EINVAL and ENOTSUP: a pipe or a device, which has no storage to wait for */
    if (fsync(fileno(output->json.file)) != 0 && errno != EINVAL && errno != ENOTSUP)
        return fail(output, outcome);
    return true;
}

bool output_close(struct output *output, struct outcome *outcome)
{
    FILE *file = output->json.file;
    output->json.file = NULL;
    if (file != NULL && fclose(file) != 0)
        return fail(output, outcome);
    return true;
}
