#include "complaint.h"

#include <stdio.h>

void complain(const char *program, const char *text)
{
    char line[640];
    int length = snprintf(line, sizeof line - 1, "%s: %s", program, text);
    size_t end = (size_t)length < sizeof line - 1 ? (size_t)length : sizeof line - 2;
    for (size_t i = 0; i < end; i++)
        if ((unsigned char)line[i] < 0x20 || line[i] == 0x7f)
            line[i] = '?';
    line[end] = '\n';
    line[end + 1] = '\0';
    fputs(line, stderr);
}
