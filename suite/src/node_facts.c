#include "node_facts.h"

#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cpu_list.h"
#include "system_files.h"

enum { PATH = 512, VALUE = 256 };

struct facts {
    const char *root;
    char *text;
    size_t used, size;
};

static void add(struct facts *facts, const char *name, const char *value)
{
    char line[PATH + VALUE];
    int length = snprintf(line, sizeof line, "%s\t%s\n", name, value);
    if (value[0] == '\0' || length >= (int)sizeof line || facts->used + (size_t)length >= facts->size)
        return;
    memcpy(facts->text + facts->used, line, (size_t)length + 1);
    facts->used += (size_t)length;
}

/* The first line of a file below the root, empty if there is none, without what would end a line of ours. */
static void read_value(const struct facts *facts, const char *file, char value[VALUE])
{
    char path[2 * PATH], line[SYSTEM_LINE];
    snprintf(path, sizeof path, "%s%s", facts->root, file);
    if (!system_line(path, line, sizeof line))
        line[0] = '\0';
    snprintf(value, VALUE, "%.*s", VALUE - 1, line);
    value[strcspn(value, "\t\n")] = '\0';
}

static void add_file(struct facts *facts, const char *name, const char *file)
{
    char value[VALUE];
    read_value(facts, file, value);
    add(facts, name, value);
}

/* A choice such as "always [madvise] never". */
static void add_choice(struct facts *facts, const char *name, const char *file)
{
    char value[VALUE];
    read_value(facts, file, value);
    char *begin = strchr(value, '['), *end = strchr(value, ']');
    if (begin == NULL || end == NULL || end < begin)
        return;
    *end = '\0';
    add(facts, name, begin + 1);
}

/* Entries of a directory below the root, sorted; -1 if there is none. */
static int list_entries(const struct facts *facts, const char *directory, struct dirent ***entries)
{
    char path[2 * PATH];
    snprintf(path, sizeof path, "%s%s", facts->root, directory);
    return scandir(path, entries, NULL, alphasort);
}

/* Adds a value to a list joined by " + ", if it is not its last one: files of equal processors say the same in turn. */
static void join(char *list, size_t size, const char *value)
{
    static const char between[] = " + ";
    size_t used = strlen(list);
    const char *last = list;
    for (char *next; (next = strstr(last, between)) != NULL;)
        last = next + strlen(between);
    if (value[0] != '\0' && strcmp(last, value) != 0)
        snprintf(list + used, size - used, "%s%.*s", used > 0 ? between : "", VALUE / 4, value);
}

/* What the groups of processors that share a frequency say in a file each. */
static void add_policies(struct facts *facts, const char *name, const char *file)
{
    static const char directory[] = "/sys/devices/system/cpu/cpufreq";
    struct dirent **entries;
    char list[VALUE] = "";
    int count = list_entries(facts, directory, &entries);
    for (int i = 0; i < count; i++) {
        char path[PATH], value[VALUE];
        snprintf(path, sizeof path, "%s/%s/%s", directory, entries[i]->d_name, file);
        read_value(facts, path, value);
        if (strncmp(entries[i]->d_name, "policy", strlen("policy")) == 0)
            join(list, sizeof list, value);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
    add(facts, name, list);
}

/* Intel's driver says whether the boost is off, the others whether it is on. */
static void add_boost(struct facts *facts)
{
    char off[VALUE], on[VALUE];
    read_value(facts, "/sys/devices/system/cpu/intel_pstate/no_turbo", off);
    read_value(facts, "/sys/devices/system/cpu/cpufreq/boost", on);
    if (off[0] != '\0')
        add(facts, "boost", strcmp(off, "0") == 0 ? "on" : "off");
    else if (on[0] != '\0')
        add(facts, "boost", strcmp(on, "0") == 0 ? "off" : "on");
}

/* The driver of a device; false if it has no device behind it, as loopback and bridges have none. */
static bool read_driver(const struct facts *facts, const char *directory, const char *device, char driver[VALUE])
{
    char path[2 * PATH], target[PATH];
    snprintf(path, sizeof path, "%s%s/%s/device/driver", facts->root, directory, device);
    ssize_t length = readlink(path, target, sizeof target - 1);
    if (length < 0)
        return false;
    target[length] = '\0';
    const char *slash = strrchr(target, '/');
    snprintf(driver, VALUE, "%.*s", VALUE / 2, slash != NULL ? slash + 1 : target);
    return true;
}

/* What is told of a network device: its driver and what these files say, each with a word in front. */
static void add_device(struct facts *facts, const char *directory, const char *device, const char *const (*files)[2])
{
    char driver[VALUE], list[VALUE], path[PATH], value[VALUE], name[PATH];
    if (device[0] == '.' || !read_driver(facts, directory, device, driver))
        return;
    snprintf(list, sizeof list, "%s", driver);
    for (; (*files)[0] != NULL; files++) {
        snprintf(path, sizeof path, "%s/%s/%s", directory, device, (*files)[1]);
        read_value(facts, path, value);
        size_t used = strlen(list);
        if (value[0] != '\0' && value[0] != '-') /* a link that is down has the speed -1 */
            snprintf(list + used, sizeof list - used, ", %s %.100s", (*files)[0], value);
    }
    snprintf(name, sizeof name, "network %.200s", device);
    add(facts, name, list);
}

static void add_devices(struct facts *facts, const char *directory, const char *const (*files)[2])
{
    struct dirent **entries;
    int count = list_entries(facts, directory, &entries);
    for (int i = 0; i < count; i++) {
        add_device(facts, directory, entries[i]->d_name, files);
        free(entries[i]);
    }
    if (count >= 0)
        free(entries);
}

void node_facts_read(const char *root, char *text, size_t size)
{
    static const char *const ethernet[][2] = {{"Mb/s", "speed"}, {"mtu", "mtu"}, {NULL, NULL}};
    static const char *const fabric[][2] = {
        {"firmware", "fw_ver"}, {"port 1", "ports/1/state"}, {"link", "ports/1/link_layer"},
        {"rate", "ports/1/rate"}, {NULL, NULL}};
    struct facts facts = {root, text, 0, size};
    char microcode[VALUE], path[PATH];
    text[0] = '\0';
    add_policies(&facts, "governor", "scaling_governor");
    add_policies(&facts, "most kHz", "scaling_max_freq");
    add_boost(&facts);
    add_file(&facts, "hardware threads", "/sys/devices/system/cpu/smt/control");
    add_choice(&facts, "transparent huge pages", "/sys/kernel/mm/transparent_hugepage/enabled");
    add_file(&facts, "huge pages", "/proc/sys/vm/nr_hugepages");
    add_file(&facts, "NUMA balancing", "/proc/sys/kernel/numa_balancing");
    add_file(&facts, "kernel", "/proc/sys/kernel/osrelease");
    add_file(&facts, "firmware", "/sys/class/dmi/id/bios_version");
    snprintf(path, sizeof path, "%s/proc/cpuinfo", root);
    if (system_value(path, "microcode", microcode, sizeof microcode))
        add(&facts, "microcode", microcode);
    add_file(&facts, "NVIDIA driver", "/sys/module/nvidia/version");
    add_file(&facts, "AMD GPU driver", "/sys/module/amdgpu/version");
    add_devices(&facts, "/sys/class/infiniband", fabric);
    add_devices(&facts, "/sys/class/net", ethernet);
}

void node_core_read(const char *root, int cpu, char *cpus, size_t size)
{
    char path[PATH];
    snprintf(path, sizeof path, "%s/sys/devices/system/cpu/cpu%d/topology/thread_siblings_list", root, cpu);
    if (!system_line(path, cpus, size) || cpu_list_count(cpus) < 2)
        cpus[0] = '\0';
}
