/* What this program was built from and with. */
#ifndef MPICOST_BUILD_H
#define MPICOST_BUILD_H

extern const char build_version[];
extern const char build_source_hash[]; /* 16 hex digits over all sources */
extern const char build_compiler[];    /* such as "gcc 12.2.0" */
extern const char build_flags[];

#endif
