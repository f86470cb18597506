/* How each host is set up: what changes its speed and can be changed from one night to the next. */
#ifndef MPICOST_NODE_FACTS_H
#define MPICOST_NODE_FACTS_H

#include <stddef.h>

enum { NODE_FACTS_TEXT = 4096 };

/* Facts of the machine whose files are below `root`, "" for this one, as lines "name<tab>value"; those that it does not tell
 * are left out, and the last ones if there is no room. */
void node_facts_read(const char *root, char *text, size_t size);

/* The CPUs of the core that a CPU belongs to, such as "0,64", where the core has several; empty for a core of one and where
 * the machine does not tell. The files are below `root`, "" for this machine. */
void node_core_read(const char *root, int cpu, char *cpus, size_t size);

#endif
