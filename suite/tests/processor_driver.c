/* Prints the name of the processor in a file such as /proc/cpuinfo. */
#include <stdio.h>

#include "processor.h"

int main(int argc, char **argv)
{
    char name[PROCESSOR_LINE];
    processor_read(argc > 1 ? argv[1] : PROCESSOR_FILE, name, sizeof name);
    puts(name);
    return 0;
}
