"""Measure operations and what they should not be slower than in one launch, also with other settings.

``./plumbline guidelines`` runs this check. Compared values come from one launch, and a launch is one value of
the comparison; a job has several.
"""

from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import run_before, variable
from reframe.utility import typecheck as typ

from postprocess.model.options import ROUNDS, VARIANTS
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.guidelines import list_table
from reframe_checks.common.mpicost import MpicostCheck
from reframe_checks.common.user_options import read_choice

USUAL = {"name": "", "variables": {}}  #: the site's own settings


@rfm.simple_test
class guidelines(MpicostCheck):
    """Operations, and calls with the same result or more work, in the same launch."""

    descr = "Operations beside what should not be faster"
    table = list_table()
    tags = {"guidelines"}

    #: Launches; one in simulated time, which repeats.
    #:
    #: :default: ``8``
    rounds = variable(int, value=read_choice(ROUNDS, 8))

    #: Settings under which each round measures once more, besides the usual ones: ``{"name": "bcast-2",
    #: "variables": {"I_MPI_ADJUST_BCAST": "2"}}``. Their variables are set before the launcher.
    #:
    #: :default: ``[]``
    variants = variable(typ.List[typ.Dict], value=read_choice(VARIANTS, []))

    def planned_launches(self) -> list[PlannedLaunch]:
        """Return every start of the job: one per setting in each round, alternately forwards and backwards."""
        (once,) = super().planned_launches()
        settings = [USUAL, *self.variants]
        starts: list[PlannedLaunch] = []
        for number in range(1 if once.exact else self.rounds):
            for setting in reversed(settings) if number % 2 else settings:
                starts.append(self.start_of(once, len(starts) + 1, setting))
        self.limit_job(starts)
        return starts

    def start_of(self, once: PlannedLaunch, number: int, setting: dict) -> PlannedLaunch:
        """Return a start with one setting, which is recorded with its values.

        Operations are compared with each other, not with references.
        """
        by_hand = dict(once.by_hand)
        if setting["variables"]:
            by_hand["set_env"] = {**by_hand.get("set_env", {}), **setting["variables"]}
        named = replace(once, number=number, start=setting["name"], by_hand=by_hand, budget=0.0)
        return replace(named, options=tuple(self.options_of(named)), asserted=False)

    @run_before("run")
    def set_command(self):
        words = self.launcher_words()
        settings = {setting["name"]: setting["variables"] for setting in [USUAL, *self.variants]}
        starts = (self.lines_of_mpicost(start, words, settings[start.start]) for start in self.started())
        self.run_lines([line for lines in starts for line in lines])
