#include "outcome.h"

#include <stdarg.h>
#include <stdio.h>

#include "complaint.h"

bool outcome_fail(struct outcome *outcome, enum exit_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(outcome->text, sizeof outcome->text, format, arguments);
    va_end(arguments);
    outcome->code = code;
    return false;
}

void print_error(const char *text)
{
    complain("mpicost", text);
}

bool outcome_agree(struct outcome *outcome, const struct control *control)
{
    int64_t claim = outcome->code == EXIT_ALL_WELL ? 0 : control->size - control->rank;
    int64_t highest = control_all_maximum(control, claim);
    if (highest == 0)
        return true;
    int speaker = control->size - (int)highest;
    if (speaker != 0 && control->rank == speaker)
        control_send(control, 0, outcome, sizeof *outcome);
    if (speaker != 0 && control->rank == 0)
        control_receive(control, speaker, outcome, sizeof *outcome);
    int64_t code = outcome->code;
    control_broadcast(control, &code, 1);
    outcome->code = (enum exit_code)code;
    if (control->rank == 0)
        print_error(outcome->text);
    return false;
}
