#include "processor.h"

#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>

#include "system_files.h"

enum { FACTS_MOST = 4 };

/* Facts that make a name together. The first one must be there. */
static const char *const rules[][FACTS_MOST] = {
    {"cpu", "machine"}, /* POWER */
    {"CPU implementer", "CPU architecture", "CPU variant", "CPU part"}, /* ARM */
    {"uarch", "isa"}, /* RISC-V */
    {"isa"},
};

static void add_fact(const char *path, const char *fact, char *name, size_t size)
{
    char value[SYSTEM_LINE];
    size_t used = strlen(name);
    if (system_value(path, fact, value, sizeof value))
        snprintf(name + used, size - used, "%s%s %s", used > 0 ? ", " : "", fact, value);
}

static void apply(const char *path, const char *const facts[FACTS_MOST], char *name, size_t size)
{
    add_fact(path, facts[0], name, size);
    for (int i = 1; i < FACTS_MOST && facts[i] != NULL && name[0] != '\0'; i++)
        add_fact(path, facts[i], name, size);
}

void processor_read(const char *path, char *name, size_t size)
{
    char value[SYSTEM_LINE];
    struct utsname kernel;
    name[0] = '\0';
    if (system_value(path, "model name", value, sizeof value))
        snprintf(name, size, "%s", value);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0] && name[0] == '\0'; i++)
        apply(path, rules[i], name, size);
    if (name[0] == '\0')
        snprintf(name, size, "unknown %s", uname(&kernel) >= 0 ? kernel.machine : "machine");
}
