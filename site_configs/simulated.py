"""Simulated machines: SimGrid on this machine, the papers' machines and a modern one as models.

./plumbline nightly --site simulated
./plumbline run --site simulated --partition torus --processes 256,512,1024
"""

from site_configs.common import site
from site_configs.ladder import Layout
from site_configs.simgrid import SELECTORS, machine, selector

#: Of Luecke et al. 2001, section 4.
LADDER = [2, 4, 8, 16, 32, 64, 96, 128]
#: The two ranks of a pair on two nodes, where the ladder has them on one.
APART = [Layout(2, 1)]
#: What would take most of a night's minute: many messages at once, or the same messages again, since in
#: simulated time every operation costs the same. SimGrid's scan sends p*p/2 messages. MPICH's algorithm
#: for large blocks, as SimGrid has it, needs a power of two.
COSTLY = {
    **{
        f"{routine}_{operation}": 16
        for routine in ("reduce", "allreduce", "scan")
        for operation in ("min", "max")
    },
    "scan_sum": 64,
    "scan_sum:1000000": 16,
    "allgather:10000": 64,
    "alltoall:1000": 64,
    "alltoall:10000": 64,
    "alltoall:100000": 4,
}

site_configuration = site(
    "simulated",
    description="Models of machines, simulated by SimGrid",
    partitions=[
        machine("torus", per_node=1, counts=LADDER, left_out_above=COSTLY),
        machine(
            "hypercube",
            per_node=2,
            counts=sorted([*LADDER, 17, 33, 65]),  # one more than a smaller hypercube has
            sparse=APART,
            left_out_above=COSTLY,
        ),
        machine("myrinet", per_node=2, counts=LADDER, left_out_above=COSTLY, sparse=APART),
        machine("ethernet", per_node=2, counts=LADDER, left_out_above=COSTLY, sparse=APART),
        machine(
            "fattree",
            per_node=4,
            counts=sorted([*LADDER, 5]),  # one more than a node has
            selectors=SELECTORS,
            sparse=APART,
            left_out_above=COSTLY,
            nodes_per_switch=16,
        ),
    ],
    environments=[selector(name) for name in SELECTORS],
)
