"""Transports are read from what each library prints, and another one is a difference."""

from __future__ import annotations

import pytest

from postprocess.features.compare.facts import SideFacts, compare_facts, summarise_facts
from postprocess.parsers.transports import TOLD, read_transports

UCX = """\
[1795.21] [vm:17905:0] ucp_context.c:2257 UCX  INFO  Version 1.18.1 (loaded from /a/libucp.so.0)
[1795.22] [vm:17904:0] ucp_worker.c:1903 UCX  INFO    ucp_context_0 self cfg#0 tag(self/memory cma/memory)
[1795.23] [vm:17904:0] ucp_worker.c:1903 UCX  INFO ucp_context_0 intra-node cfg#1 tag(sysv/memory cma/memory)
[1795.22] [vm:17905:0] ucp_worker.c:1903 UCX  INFO ucp_context_0 intra-node cfg#0 tag(sysv/memory cma/memory)
"""
OPEN_MPI = """\
[vm:19730] select: initializing pml component ucx
[vm:19730] select: init returned failure for component ucx
[vm:19730] select: component ob1 selected
[vm:19730] mca: bml: Using self btl for send to [[7,1],0] on node vm
[vm:19730] mca: bml: Using vader btl for send to [[7,1],1] on node vm
[vm:19731] mca: bml: Using vader btl for send to [[7,1],0] on node vm
"""
INTEL = """\
[0] MPI startup(): libfabric version: 1.21.0-impi
[0] MPI startup(): libfabric provider: tcp
[0] MPI startup(): Load tuning file: "/opt/etc/tuning_generic_shm-ofi.dat"
"""


@pytest.mark.parametrize(
    ("output", "told"),
    [
        (UCX, {"UCX version": "1.18.1", "UCX inside a node": "tag(sysv/memory cma/memory)"}),
        (OPEN_MPI, {"Open MPI's layer of messages (pml)": "ob1", "Open MPI's transports (btl)": "self, vader"}),
        (
            INTEL,
            {
                "libfabric version": "1.21.0-impi",
                "libfabric provider": "tcp",
                "Intel MPI's tuning": "tuning_generic_shm-ofi.dat",
            },
        ),
        ("provider: tcp;ofi_rxm, score = 4\n", {"libfabric provider": "tcp;ofi_rxm"}),
        ("# mpicost 0.1.0\n", {}),
    ],
)
def test_libraries_tell_their_transports(output: str, told: dict[str, str]) -> None:
    assert read_transports(output) == told
    assert told.keys() <= TOLD.keys()


def test_another_transport_is_a_difference_that_is_shown() -> None:
    old, new = (
        SideFacts("x", "4.1", "/opt/lib/libmpi.so", (), (), {}, read_transports(text))
        for text in (OPEN_MPI, OPEN_MPI.replace("vader", "sm"))
    )
    found = summarise_facts(compare_facts(old, new))
    assert found == ["Open MPI's transports (btl): self, vader -> self, sm"]
