"""Each routine of both papers as its own test, for users of plain ReFrame who select by name and tag.

``reframe -n bcast``, ``-t allreduce``, ``-n %routine=scan_max``, ``-E 'routine == "barrier"'``. The tests exist
only if tests are selected that way: a run of everything measures all routines in one launch (``mpicost``), as a
night does.
"""

import sys

import reframe as rfm
from reframe.core.builtins import parameter, run_after

from reframe_checks.common.mpicost import MpicostCheck
from reframe_checks.common.selection_guard import chooses_tests
from reframe_checks.common.user_options import is_in_session
from reframe_checks.luecke import TESTS


class RoutineCheck(MpicostCheck, family=True):
    """One routine in its own launch."""

    descr = "One MPI routine as Luecke et al. measured it"
    table = TESTS
    tags = set()

    #: The measured routine: ``bcast``.
    routine = parameter(TESTS)

    def chosen_routines(self) -> list[str]:
        return [routine for routine in super().chosen_routines() if routine == self.routine]

    @run_after("init")
    def add_tags(self):
        """Add the routine, and the operation that it calls: ``allreduce`` for ``allreduce_sum``."""
        self.tags |= {self.routine, self.routine.partition("_")[0]}


if not is_in_session() and chooses_tests(sys.argv[1:]):

    @rfm.simple_test
    class routine(RoutineCheck):
        """A test for each routine and layout."""
