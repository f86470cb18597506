#include "interrupts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cpu_list.h"

/* The CPU of each column, from the line "CPU0 CPU1 ...". Returns how many columns there are. */
static int read_columns(char *line, int columns[INTERRUPTS_CPUS])
{
    int count = 0;
    char *rest;
    for (char *word = strtok_r(line, " \n", &rest); word != NULL; word = strtok_r(NULL, " \n", &rest))
        if (count < INTERRUPTS_CPUS && strncmp(word, "CPU", strlen("CPU")) == 0)
            columns[count++] = atoi(word + strlen("CPU"));
    return count;
}

/* A line "name: number number ... text". One with fewer numbers than CPUs tells of none of them. */
static void add_line(struct interrupts *interrupts, const char *line, const int *columns, int count, int sign)
{
    const char *rest = strchr(line, ':');
    int64_t numbers[INTERRUPTS_CPUS];
    if (rest++ == NULL)
        return;
    for (int i = 0; i < count; i++) {
        char *end;
        numbers[i] = strtoll(rest, &end, 10);
        if (end == rest)
            return;
        rest = end;
    }
    for (int i = 0; i < count; i++)
        if (columns[i] < INTERRUPTS_CPUS)
            interrupts->of_cpu[columns[i]] += sign * numbers[i];
}

bool interrupts_add(struct interrupts *interrupts, const char *path, int sign)
{
    FILE *file = fopen(path, "r");
    char *line = NULL;
    size_t size = 0;
    int columns[INTERRUPTS_CPUS];
    if (file == NULL)
        return false;
    int count = getline(&line, &size, file) > 0 ? read_columns(line, columns) : 0;
    while (count > 0 && getline(&line, &size, file) > 0)
        add_line(interrupts, line, columns, count, sign);
    free(line);
    fclose(file);
    return count > 0;
}

int64_t interrupts_of(const struct interrupts *interrupts, const char *cpus)
{
    int64_t sum = 0;
    for (int cpu = 0; cpu < INTERRUPTS_CPUS; cpu++) {
        char alone[16];
        snprintf(alone, sizeof alone, "%d", cpu);
        if (interrupts->of_cpu[cpu] != 0 && cpu_list_common(cpus, alone) > 0)
            sum += interrupts->of_cpu[cpu];
    }
    return sum;
}
