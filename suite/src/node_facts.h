/* How each host is set up: what changes its speed and can be changed from one night to the next. */
#ifndef MPICOST_NODE_FACTS_H
#define MPICOST_NODE_FACTS_H

#include <stddef.h>

enum { NODE_FACTS_TEXT = 4096 };

/* Facts of the machine whose files are below `root`, "" for this one, as lines "name<tab>value"; those that it does not tell
 * are left out, and the last ones if there is no room. */
void node_facts_read(const char *root, char *text, size_t size);

#endif
