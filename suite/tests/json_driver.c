/* Prints the bytes of standard input as a JSON string, and then the number of its first argument. */
#include <stdio.h>
#include <stdlib.h>

#include "json.h"

int main(int argc, char **argv)
{
    static char text[65536];
    struct json json = {.file = stdout};
    text[fread(text, 1, sizeof text - 1, stdin)] = '\0';
    json_open(&json, '[');
    json_string(&json, text);
    json_number(&json, argc > 1 ? strtod(argv[1], NULL) : 0);
    json_close(&json, ']');
    json_newline(&json);
    return 0;
}
