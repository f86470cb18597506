"""Planted slow paths: each is told with the library's own line, and a library that is silent is unknown.

Lines marked ``recorded`` were printed by the wheels of MPICH 5.0.2 (UCX 1.20.1), Open MPI 5.0.11 and Intel MPI
2021.19; all others are constructed in the words of the libraries' sources.
"""

import pytest

from postprocess.model.case import Case
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.transports import TOLD, read_paths, read_transports
from postprocess.session.nightly.transports import TransportProof, classify_pairs
from site_configs.annotations import find_fault
from site_configs.schema.transports import ExpectedTransport, Transports
from tests.support.faults import Declared, each_of, plants

STAMP = "[1795697431.227446] [vm:10715:0]      ucp_worker.c:1912 UCX  INFO    ucp_context_0"
IMPI = "[0] MPI startup():"


def ucx(pairs: str, lanes: str) -> str:
    return f"{STAMP} {pairs}-node cfg#1 tag({lanes})  rma_am({lanes})  am({lanes})"


SHARED = ucx("intra", "sysv/memory cma/memory")  # recorded
RAILS = ucx("inter", "rc_mlx5/mlx5_0:1 rc_mlx5/mlx5_1:1")
TUNED = f'{IMPI} Load tuning file: "/opt/etc/tuning_skx_{{}}.dat"'  # recorded with shm
BTL = "[vm:10555] mca: bml: Using {} btl for send to [[5550,1],0] on node {}"  # recorded with sm, tcp and self

#: Key: the class of pairs, what is expected of it, and what the library prints.
WRONG = {
    ("node", "ucx:posix|sysv|cma", ucx("intra", "tcp/eth0")):  # recorded
        plants("environment", "TCP forced in a node: `UCX_TLS=tcp,self`", "UCX",
               "not-comparable", 1, "uses ucx:tcp, …ucp_context_0 intra-node cfg#1 tag(tcp/eth0)"),
    ("node", "ucx:posix|sysv|cma", ucx("intra", "rc_mlx5/mlx5_0:1")):
        plants("environment", "shared memory off: pairs in a node by the network's card", "UCX",
               "not-comparable", 1, "uses ucx:rc_mlx5, …ucp_context_0 intra-node"),
    ("node", "ucx:posix|cma", SHARED):
        plants("environment", "`UCX_TLS` changed between reference and night: sysv, not posix", "UCX",
               "not-comparable", 1, "uses ucx:sysv+cma, …tag(sysv/memory cma/memory)"),
    ("network", "ucx:rc|dc", ucx("inter", "tcp/eth0")):
        plants("environment", "TCP in place of InfiniBand", "UCX between nodes",
               "not-comparable", 1, "between nodes its MPI uses ucx:tcp, …tag(tcp/eth0)"),
    ("network", "ucx:rc|dc", ucx("inter", "ud_mlx5/mlx5_0:1")):
        plants("environment", "datagrams (ud) in place of rc or dc", "UCX between nodes",
               "not-comparable", 1, "uses ucx:ud_mlx5, …"),
    ("network", "ucx:rc", ucx("inter", "dc_mlx5/mlx5_0:1")):
        plants("environment", "dc in place of rc", "UCX between nodes",
               "not-comparable", 1, "uses ucx:dc_mlx5, …"),
    ("network", "ucx:rc_mlx5", ucx("inter", "rc_verbs/mlx5_0:1")):
        plants("environment", "verbs in place of the accelerated rc", "UCX between nodes",
               "not-comparable", 1, "uses ucx:rc_verbs, …"),
    ("network", "ucx:rc|dc x2", ucx("inter", "rc_mlx5/mlx5_0:1")):
        plants("environment", "a rail down: one of two devices", "UCX between nodes",
               "not-comparable", 1, "expects 'ucx:rc|dc x2': …tag(rc_mlx5/mlx5_0:1)"),
    ("network", "ucx:rc|dc", RAILS + "\n" + ucx("inter", "rc_mlx5/mlx5_0:1 tcp/eth0")):
        plants("environment", "one pair of many that has TCP among its lanes", "UCX between nodes",
               "not-comparable", 1, "uses ucx:rc_mlx5+tcp on 2 rails, …"),
    ("network", "ucx:rc|dc", f"{IMPI} libfabric provider: tcp"):
        plants("environment", "another layer: libfabric in place of UCX", "Intel MPI",
               "not-comparable", 1, "uses libfabric:tcp, …: [0] MPI startup(): libfabric provider: tcp"),
    ("network", "libfabric:psm3", f"{IMPI} libfabric provider: tcp;ofi_rxm"):
        plants("environment", "`FI_PROVIDER=tcp` in place of psm3", "Intel MPI",
               "not-comparable", 1, "uses libfabric:tcp;ofi_rxm, …"),
    ("network", "libfabric:cxi", "libfabric provider: tcp;ofi_rxm - 10.0.0.0/24"):
        plants("environment", "`FI_PROVIDER=tcp` in place of cxi", "MPICH with libfabric",
               "not-comparable", 1, "uses libfabric:tcp;ofi_rxm, …: libfabric provider: tcp;ofi_rxm"),
    ("network", "libfabric:efa", "libfabric provider: sockets - 10.0.0.0/24"):
        plants("environment", "sockets in place of efa", "MPICH with libfabric",
               "not-comparable", 1, "uses libfabric:sockets, …"),
    ("network", "libfabric:cxi", "[n1:7] mtl_ofi_component.c:366: mtl:ofi:prov: verbs;ofi_rxm"):
        plants("environment", "verbs in place of cxi", "Open MPI with libfabric",
               "not-comparable", 1, "uses libfabric:verbs;ofi_rxm, …mtl:ofi:prov: verbs"),
    ("node", "intel-mpi:shm", TUNED.format("ofi") + f"\n{IMPI} libfabric provider: tcp"):
        plants("environment", "shared memory off: `I_MPI_FABRICS=ofi`", "Intel MPI",
               "not-comparable", 1, "in a node its MPI uses libfabric:tcp, …"),
    ("node", "openmpi:sm|vader", BTL.format("self", "vm") + "\n" + BTL.format("tcp", "vm")):  # recorded
        plants("environment", "`--mca btl self,tcp`", "Open MPI in a node",
               "not-comparable", 1, "uses openmpi:tcp, …: [vm:10555] mca: bml: Using tcp btl"),
    ("network", "openmpi:ofi|uct", BTL.format("sm", "vm") + "\n" + BTL.format("tcp", "n2")):
        plants("environment", "`--mca btl self,sm,tcp`", "Open MPI between nodes",
               "not-comparable", 1, "between nodes its MPI uses openmpi:tcp, …on node n2"),
}  # fmt: skip


def judge(pairs: str, expected: str, output: str) -> tuple[CaseResult, list[str]]:
    """Judge a passed case whose MPI printed this, and return what is told of the night's transports."""
    layout = {"node": (2, 2), "network": (2, 1)}[pairs]
    case = Case("s", "p", "mpi", "mpicost", "pingpong", 1, "warm", "window", *layout, 8)
    place = "s:p", "mpi", pairs
    paths = [path for path in read_paths(output) if path.pairs == pairs]
    proof = TransportProof({place: paths}, {place: ExpectedTransport.parse(expected)})
    (result,) = proof.apply([CaseResult(case, Verdict.PASS, rerun="./plumbline run")])
    return result, list(proof.describe())


@pytest.mark.parametrize("planted", each_of(WRONG))
def test_a_slow_path_is_not_comparable_and_quoted(planted, declared: Declared) -> None:
    result, _ = judge(*planted)
    declared.check_case(result.verdict, result.reason)
    assert result.rerun


SILENT = {
    "mpicost 0.1.0":
        plants("environment", "a library that says nothing of transports", "a verbose start",
               "pass", 0, "transports: mpi in a node unknown"),
    SHARED.replace("intra", "self").replace("-node", ""):
        plants("environment", "UCX that tells of each rank to itself alone", "a verbose start",
               "pass", 0, "transports: mpi in a node unknown"),
    f"==== UCX netmod Capability ====\n{ucx('intra', 'tcp/eth0')}":  # recorded
        plants("environment", "`UCX_TLS=tcp,self`, while MPICH's own memory carries it", "MPICH",
               "pass", 0, "transports: mpi in a node unknown"),
    ucx("inter", "rc_mlx5/mlx5_0:1"):
        plants("environment", "UCX that tells of pairs between nodes alone", "a verbose start",
               "pass", 0, "transports: mpi in a node unknown"),
}  # fmt: skip


@pytest.mark.parametrize("planted", each_of(SILENT))
def test_a_silent_library_is_unknown_and_told(planted, declared: Declared) -> None:
    result, told = judge("node", "ucx:posix", planted)
    declared.check({result.verdict}, 0, told)


@pytest.mark.parametrize(
    ("pairs", "expected", "output", "told"),
    [
        ("node", "ucx:posix|sysv|cma", SHARED, "ucx:sysv+cma"),
        ("network", "ucx:rc|dc x2", RAILS, "ucx:rc_mlx5 on 2 rails"),
        ("node", "openmpi:sm", BTL.format("sm", "vm"), "openmpi:sm"),
        ("node", "intel-mpi:shm", TUNED.format("shm"), "intel-mpi:shm"),
        ("network", "libfabric:cxi", f"{IMPI} libfabric provider: cxi", "libfabric:cxi"),
    ],
)
def test_the_expected_transport_passes_and_is_told(pairs, expected, output, told) -> None:
    result, lines = judge(pairs, expected, output)
    assert (result.verdict, result.reason) == (Verdict.PASS, "")
    assert lines[0].endswith(told)


def test_pairs_are_classified_by_layout() -> None:
    expected = {(1, 1): [], (2, 2): ["node"], (2, 1): ["network"], (4, 2): ["node", "network"]}
    assert {layout: classify_pairs(*layout) for layout in expected} == expected


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (f"{SHARED}\n{RAILS}", {"node": "ucx:sysv+cma", "network": "ucx:rc_mlx5 on 2 rails"}),
        (
            "\n".join(BTL.format(*seen) for seen in (("sm", "vm.cluster"), ("tcp", "n2"))),
            {"node": "openmpi:sm", "network": "openmpi:tcp"},
        ),
        (
            f"{TUNED.format('shm-ofi')}\n{IMPI} libfabric provider: mlx",
            {"node": "intel-mpi:shm", "network": "libfabric:mlx"},
        ),
    ],
    ids=["ucx", "open-mpi", "intel-mpi"],
)
def test_one_start_on_several_nodes_tells_both_classes_of_pairs(output, told) -> None:
    assert {path.pairs: str(path) for path in read_paths(output)} == told


@pytest.mark.parametrize(
    ("value", "told"),
    [
        ("ucx:rc", "write {'network'"),
        ({"rack": "ucx:rc"}, "write one of node, network"),
        ({"node": "shm"}, "write one of ucx, libfabric"),
        ({"node": "ucx:rc x0"}, "as in 'ucx:rc|dc x2'"),
        ({"node": 3}, "as in 'ucx:rc|dc x2'"),
    ],
)
def test_wrong_transports_of_a_site_are_refused(value, told) -> None:
    assert told in find_fault(value, Transports)


UCX_OUTPUT = """\
[1795.21] [vm:17905:0] ucp_context.c:2257 UCX  INFO  Version 1.18.1 (loaded from /a/libucp.so.0)
[1795.22] [vm:17904:0] ucp_worker.c:1903 UCX  INFO    ucp_context_0 self cfg#0 tag(self/memory cma/memory)
[1795.23] [vm:17904:0] ucp_worker.c:1903 UCX  INFO ucp_context_0 intra-node cfg#1 tag(sysv/memory cma/memory)
[1795.22] [vm:17905:0] ucp_worker.c:1903 UCX  INFO ucp_context_0 intra-node cfg#0 tag(sysv/memory cma/memory)
"""
OPEN_MPI_OUTPUT = """\
[vm:19730] select: initializing pml component ucx
[vm:19730] select: init returned failure for component ucx
[vm:19730] select: component ob1 selected
[vm:19730] mca: bml: Using self btl for send to [[7,1],0] on node vm
[vm:19730] mca: bml: Using vader btl for send to [[7,1],1] on node vm
[vm:19731] mca: bml: Using vader btl for send to [[7,1],0] on node vm
"""
INTEL_OUTPUT = """\
[0] MPI startup(): libfabric version: 1.21.0-impi
[0] MPI startup(): libfabric provider: tcp
[0] MPI startup(): Load tuning file: "/opt/etc/tuning_generic_shm-ofi.dat"
"""


UCX_TOLD = {"UCX version": "1.18.1", "UCX inside a node": "tag(sysv/memory cma/memory)"}
OPEN_MPI_TOLD = {"Open MPI's layer of messages (pml)": "ob1", "Open MPI's transports (btl)": "self, vader"}
INTEL_TOLD = {"libfabric version": "1.21.0-impi", "libfabric provider": "tcp"}
INTEL_TOLD |= {"Intel MPI's tuning": "tuning_generic_shm-ofi.dat"}


@pytest.mark.parametrize(
    ("output", "told"),
    [
        *((UCX_OUTPUT, UCX_TOLD), (OPEN_MPI_OUTPUT, OPEN_MPI_TOLD), (INTEL_OUTPUT, INTEL_TOLD)),
        ("provider: tcp;ofi_rxm, score = 4\n", {"libfabric provider": "tcp;ofi_rxm"}),
        ("# mpicost 0.1.0\n", {}),
    ],
)
def test_libraries_tell_their_transports(output: str, told: dict[str, str]) -> None:
    assert read_transports(output) == told
    assert told.keys() <= TOLD.keys()
