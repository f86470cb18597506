"""The application kernels of Taboada et al., measured where they are asked for.

``./plumbline run --program kernels``: all five at their sizes A, B and C. For nights, a launch of a few seconds
at size A: ``./plumbline nightly --family kernels``.
"""

from __future__ import annotations

import reframe as rfm
from reframe.core.builtins import parameter

from postprocess.model.options import PROGRAM, WANTED
from postprocess.model.routines import kernels as known
from postprocess.model.routines.kernels import KERNELS
from postprocess.model.routines.mpicost import WARM
from reframe_checks.common.layouts import list_all_kernel_layouts, list_kernel_layouts_on
from reframe_checks.common.mpicost import MpicostCheck
from reframe_checks.common.requested import RequestedCheck
from reframe_checks.common.user_options import read_choice
from site_configs.topology.layouts import Layout

#: allowed for a run, not expected
SECONDS_PER_RUN = {"A": 5.0, "B": 20.0, "C": 100.0}


@rfm.simple_test
class kernels(RequestedCheck):
    """Whole runs of each kernel, each verified, with and without the return of the results."""

    descr = "Application kernels as Taboada et al. measured them"
    program = KERNELS
    table = {name: [count] for name, count in known.BYTES.items()}
    layout = parameter(list_all_kernel_layouts())
    site_variables = tuple(
        variable
        for variable in MpicostCheck.site_variables
        if variable not in ("trials", "trial_rounds", "cache", "peers")
    )

    #: those that rules set are of mpicost
    trials = known.TRIALS if read_choice(WANTED) else read_choice("trials", known.TRIALS)
    trial_rounds = 1
    cache = WARM  # a run goes through its data again and again

    def layouts_on(self, part) -> list[Layout]:
        """Return the layouts that the paper compares."""
        return list_kernel_layouts_on(part)

    def chosen_routines(self) -> list[str]:
        """Return the kernels that were named; all where their program was."""
        if KERNELS in read_choice(PROGRAM.variable, []) and not self.routines:
            return [each for each in self.table if self.is_selected(each)]
        return super().chosen_routines()

    def chosen_sizes(self, routine: str) -> list[int]:
        """Return the one size of a case, unless others were chosen."""
        return [size for size in self.table[routine] if not self.sizes or size in self.sizes]

    def allowed_trial_seconds(self) -> float:
        """Return the seconds that a run may take on average."""
        sizes = [case.routine.split("_")[1] for case in self.all_cases()]
        return sum(SECONDS_PER_RUN[size] for size in sizes) / max(1, len(sizes))

    def value_of_references(self, name: str) -> int | None:
        """Return nothing: a kernel has as many trials in a night as in a calibration."""
