/* Prints the facts of the machine whose files are below a folder. */
#include <stdio.h>

#include "node_facts.h"

int main(int argc, char **argv)
{
    char text[NODE_FACTS_TEXT];
    node_facts_read(argc > 1 ? argv[1] : "", text, sizeof text);
    fputs(text, stdout);
    return 0;
}
