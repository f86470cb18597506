"""Families that measure all that the page of a paper needs, as the paper did: ``--family`` chooses one.

They are for pages: a session of one is held against no reference of nights.
"""

from dataclasses import dataclass

from postprocess.model.routines import rus, taboada
from postprocess.model.routines.benchmark import LOOP
from postprocess.model.routines.mpicost import FAMILIES, ROUTINES, SWAPS

LUECKE, COMMTEST = "luecke", "commtest"


@dataclass(frozen=True)
class PaperFamily:
    """What a paper measures, and what brings the processes together before a trial."""

    routines: tuple[str, ...]
    sync: str


PAPER_FAMILIES = {
    LUECKE: PaperFamily(tuple(routine.name for routine in ROUTINES if routine.test), "barrier"),
    rus.RUS: PaperFamily(rus.ROUTINES, LOOP),
    taboada.TABOADA: PaperFamily(taboada.MEASURED, "barrier"),
    COMMTEST: PaperFamily(FAMILIES[SWAPS], "dissemination"),
}
