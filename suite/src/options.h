/* The command line. */
#ifndef MPICOST_OPTIONS_H
#define MPICOST_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "cooling.h"
#include "family.h"
#include "outcome.h"
#include "routine.h"

/* SYNC_LOOP: our own barrier, and then many calls one right after the other */
enum sync_kind { SYNC_DISSEMINATION, SYNC_BARRIER, SYNC_WINDOW, SYNC_LOOP };
enum action { ACTION_MEASURE, ACTION_LIST, ACTION_VERSION, ACTION_HELP };

extern const char *const sync_names[]; /* indexed by enum sync_kind */

struct options {
    enum action action;
    const char *routines; /* comma-separated names; NULL: the whole family */
    const struct family *family;
    bool family_given;
    const char *bytes; /* comma-separated; NULL: the sizes of the family */
    const char *peers; /* comma-separated; NULL: every other rank */
    size_t trials;
    size_t rounds; /* in which each case has its share of the trials */
    enum sync_kind sync;
    enum cache_state cache;
    uint64_t flush_bytes; /* per rank; 0: from the machine's caches */
    double settle;         /* s of work before the first case, at most */
    double relative_error; /* 0: no early stop */
    double loop_seconds;   /* s that the calls of a trial take together, if sync is SYNC_LOOP */
    bool back_to_back;     /* trials one right after the other */
    size_t warm_up;        /* untimed calls before them */
    bool seed_given;
    uint64_t seed;
    const char *device;    /* the kind of GPU */
    const char *devices;   /* comma-separated numbers of the ranks of a host; NULL: the rank's on its host */
    uint64_t memory_limit; /* bytes per rank; 0: what the host has */
    const char *output;    /* NULL: no records */
    const char *token;     /* of whoever starts it, who looks for it in the records; may be empty */
};

extern const char options_help[];

/* Reads the command line. On false the outcome says what is wrong with it. */
bool options_parse(struct options *options, int argc, char **argv, struct outcome *outcome);

/* A number that two ranks share only if they were started with the same arguments. */
int64_t options_fingerprint(int argc, char **argv);

#endif
