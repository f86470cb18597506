"""The controls: routines of mpicost that call no MPI, so that a slow machine is told from a slow MPI.

A night times them in the launch of the other routines, on all ranks at the same time. Simulated processors are
as fast as the machine that simulates them: there are no controls in simulated time.
"""

from __future__ import annotations

from postprocess.cases import Case

#: Sizes in bytes, by routine.
CONTROLS = {"control_compute": [8], "control_memory": [1_000_000], "control_timer": [8]}


def is_control(case: Case) -> bool:
    """Whether no MPI has a part in what a case times."""
    return case.program == "mpicost" and case.routine in CONTROLS
