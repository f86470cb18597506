"""Families that measure all that the page of a paper needs, as the paper did: ``--family`` chooses one.

A session of one is compared with no reference of nights.
"""

from dataclasses import dataclass

from postprocess.model.routines import rus, taboada
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import FAMILIES, ROUTINES, SWAPS

LUECKE, COMMTEST = "luecke", "commtest"


@dataclass(frozen=True)
class PaperFamily:
    """The routines of a paper, and how the processes start a trial together."""

    routines: tuple[str, ...]
    sync: str


PAPER_FAMILIES = {
    LUECKE: PaperFamily(tuple(routine.name for routine in ROUTINES if routine.test), "barrier"),
    rus.RUS: PaperFamily(rus.ROUTINES, LOOP),
    taboada.TABOADA: PaperFamily(taboada.MEASURED, "barrier"),
    COMMTEST: PaperFamily(FAMILIES[SWAPS], "dissemination"),
}
