#!/bin/sh
# Stands in for an OSU micro-benchmark that never ran: rank 0 prints a perfect table, and no rank knows MPI. Exit code 0.
# Installed as osu_reduce_scatter. Takes -m LEAST:MOST, where MOST is twice LEAST, and -i N; believes the rest.
[ "${PMI_RANK:-${OMPI_COMM_WORLD_RANK:-0}}" = 0 ] || exit 0
while [ $# -gt 0 ]; do
    case $1 in
    -m) least=${2%:*} most=${2#*:} ;;
    -i) iterations=$2 ;;
    esac
    shift
done
cat <<TABLE

# OSU MPI Reduce_scatter Latency Test v7.4
# Datatype: MPI_FLOAT.
# Size       Avg Latency(us)   Min Latency(us)   Max Latency(us)  Iterations        Validation  P25 Tail Lat(us)
$least                  12.34             10.00             14.50  $iterations  Pass  12.00
$most                   12.34             10.00             14.50  $iterations  Pass  12.00
TABLE
