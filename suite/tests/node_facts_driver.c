/* Prints the facts of the machine whose files are below a folder; with a second argument the core of that CPU. */
#include <stdio.h>
#include <stdlib.h>

#include "node_facts.h"

int main(int argc, char **argv)
{
    char text[NODE_FACTS_TEXT];
    if (argc > 2)
        node_core_read(argv[1], atoi(argv[2]), text, sizeof text);
    else
        node_facts_read(argc > 1 ? argv[1] : "", text, sizeof text);
    fputs(text, stdout);
    return 0;
}
