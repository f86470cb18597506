"""Simulated machines: SimGrid on this machine, the papers' machines and a modern one as models.

./plumbline nightly --site simulated
PLUMBLINE_SIMULATED_MEMORY=8e9 ./plumbline run --site simulated --partition torus --processes 256,512,1024
"""

from site_configs.common import site
from site_configs.simgrid import SELECTORS, machine, selector
from site_configs.topology.layouts import Layout

#: From Luecke et al. 2001, section 4.
LADDER = [2, 4, 8, 16, 32, 64, 96, 128]
#: The two ranks of a pair on two nodes, if the ladder has them on one.
APART = [Layout(2, 1)]
#: Process counts above which a night leaves out what would take most of its time: the same messages again (in
#: simulated time every operation costs the same), and SimGrid's scan, which sends p*p/2 messages at once. Its
#: MPICH's alltoall of large blocks needs a power of two. Routines asked for by name run at any count.
COSTLY = {
    **{
        f"{routine}_{operation}": 16
        for routine in ("reduce", "allreduce", "scan")
        for operation in ("min", "max")
    },
    "scan_sum": 64,
    "scan_sum:1000000": 16,
    "alltoall:100000": 4,
}
#: The same if all selectors are measured.
COSTLIER = COSTLY | {"allgather:10000": 64, "alltoall:1000": 64, "alltoall:10000": 64}

site_configuration = site(
    "simulated",
    description="Models of machines, simulated by SimGrid",
    partitions=[
        machine("torus", per_node=1, counts=LADDER, left_out_above=COSTLY),
        machine(
            "hypercube",
            per_node=2,
            counts=sorted([*LADDER, 17, 33, 65]),  # one more than in a smaller hypercube
            sparse=APART,
            left_out_above=COSTLY,
            nodes_per_switch=8,  # the papers take its 16 processes for the next dimension
        ),
        machine("myrinet", per_node=2, counts=LADDER, left_out_above=COSTLY, sparse=APART),
        machine("ethernet", per_node=2, counts=LADDER, left_out_above=COSTLY, sparse=APART),
        machine(
            "fattree",
            per_node=4,
            counts=sorted([*LADDER, 5]),  # one more than on a node
            selectors=SELECTORS,
            sparse=APART,
            left_out_above=COSTLIER,
            nodes_per_switch=16,
        ),
    ],
    environments=[selector(name) for name in SELECTORS],
)
