#!/bin/sh
# Compiles a file of the suite once for all work directories of a session of tests. CMake starts it in a build
# directory, with the compiler's command line (CMAKE_C_COMPILER_LAUNCHER). The object is known by that line,
# without the places of the build and the work directory, and by what was generated for it.
set -eu
case $* in */suite/*) ;; *) exec "$@" ;; esac # CMake tries the compiler, too
for word; do
    [ "${before-}" != -o ] || object=$word
    before=$word
done
known=$({
    printf '%s\n' "$@" | sed "s,$PWD,,g; s,$PLUMBLINE_HOME,,g"
    cat generated/*.h generated/*/*.h
} | sha256sum)
kept=$PLUMBLINE_TESTS_SHARED/${known%% *}.o
! cp "$kept" "$object" 2>/dev/null || exit 0
"$@"
cp "$object" "$kept.$$"
mv "$kept.$$" "$kept"
