#include "processors.h"

#include <stdio.h>
#include <string.h>

#include "gather.h"
#include "processor.h"

#define BETWEEN " + "
#define MORE BETWEEN "others"

enum { KINDS_MOST = 16, TEXT = KINDS_MOST * (PROCESSOR_LINE + (int)sizeof BETWEEN) + (int)sizeof MORE };

struct kinds {
    int count;
    bool more; /* than there is room for: the last ones were left out */
    char list[KINDS_MOST][PROCESSOR_LINE]; /* sorted, no two the same */
};

static void add(struct kinds *kinds, const char *name)
{
    int place = 0, order = 1;
    while (place < kinds->count && (order = strcmp(name, kinds->list[place])) > 0)
        place++;
    if (order == 0)
        return;
    kinds->more = kinds->more || kinds->count == KINDS_MOST;
    if (place == KINDS_MOST)
        return;
    int moved = (kinds->count < KINDS_MOST ? kinds->count : KINDS_MOST - 1) - place;
    memmove(kinds->list[place + 1], kinds->list[place], (size_t)moved * PROCESSOR_LINE);
    memcpy(kinds->list[place], name, PROCESSOR_LINE);
    kinds->count = place + moved + 1;
}

static void write_kinds(struct json *json, const struct kinds *kinds)
{
    char text[TEXT];
    size_t used = 0;
    for (int i = 0; i < kinds->count; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", i > 0 ? BETWEEN : "", kinds->list[i]);
    snprintf(text + used, sizeof text - used, "%s", kinds->more ? MORE : "");
    json_key_string(json, "cpu_model", text);
}

void processors_write(struct json *json, const struct control *leaders)
{
    struct gather gather;
    struct kinds kinds = {0};
    char name[PROCESSOR_LINE] = "";
    processor_read(PROCESSOR_FILE, name, sizeof name);
    add(&kinds, name);
    gather_open(&gather, leaders);
    for (int host = 1; host < leaders->size; host++) {
        gather_get(&gather, name, sizeof name);
        add(&kinds, name);
    }
    gather_close(&gather);
    write_kinds(json, &kinds);
}

/* All of the line is sent, however short the name: simulated time does not hang on what it is simulated on. */
void processors_answer(const struct control *leaders)
{
    struct gather gather;
    char name[PROCESSOR_LINE] = "";
    processor_read(PROCESSOR_FILE, name, sizeof name);
    gather_open(&gather, leaders);
    gather_put(&gather, name, sizeof name);
    gather_finish(&gather);
}
