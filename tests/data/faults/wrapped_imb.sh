#!/bin/sh
# Stands in front of a real IMB, as IMB-MPI1 in a folder of its own, and spoils what it says. REAL_IMB is the folder
# of the real one, PLANTED_FAULT what happens:
#
#   (nothing)    nothing: the real program takes over
#   truncated    the last 200 bytes of the output are lost; exit code 0
#   no_end       the last line, which says that MPI_Finalize was entered, is lost; exit code 0
#   out_of_mem   a row says `out-of-mem.` instead of numbers
#   slow_units   the times are called milliseconds
#   swallowed    the program is killed before it has done anything, and the exit code is 0
#   wrong_check  as IMB-MPI1-check it tells of wrong data
#
# As IMB-MPI1-check it counts defects, as IMB does that was built with CHECK.
real=$REAL_IMB/$(basename "$0")
case $0 in
*-check)
    said=$("$real" "$@") || exit
    [ -n "$said" ] || exit 0
    printf '%s\n' "$said" | sed 's/^ *#bytes .*/&  defects/; s/^ *[0-9][0-9. ]*$/&  0.00/'
    [ "$PLANTED_FAULT" != wrong_check ] || echo "1: Error Bcast,size = 16,sample #0"
    exit 0
    ;;
esac
case $PLANTED_FAULT in
truncated | no_end | out_of_mem | slow_units)
    said=$("$real" "$@" && echo .) || exit
    said=${said%.}
    ;;
esac
case $PLANTED_FAULT in
truncated) printf %s "$said" | head -c -200 ;;
no_end) printf %s "$said" | grep -v "entering MPI_Finalize" ;;
out_of_mem) printf %s "$said" | sed 's/^ *8 .*/            8    out-of-mem.; needed X=     0.125 GB; use flag "-mem X" or MAX_MEM_USAGE>=X/' ;;
slow_units) printf %s "$said" | sed 's/usec/msec/g' ;;
swallowed) exit 0 ;;
*) exec "$real" "$@" ;;
esac
exit 0
