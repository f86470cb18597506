/* An error line. */
#ifndef MPICOST_COMPLAINT_H
#define MPICOST_COMPLAINT_H

/* Writes one line to standard error, in one piece. What the text quotes cannot break the line. */
void complain(const char *program, const char *text);

#endif
