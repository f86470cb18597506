/* Prints the interrupts of CPUs as a file tells them: lateness_driver FILE CPUS. */
#include <inttypes.h>
#include <stdio.h>

#include "interrupts.h"

int main(int argc, char **argv)
{
    static struct interrupts interrupts;
    if (argc != 3 || !interrupts_add(&interrupts, argv[1], 1))
        return 1;
    printf("%" PRId64 "\n", interrupts_of(&interrupts, argv[2]));
    return 0;
}
