"""Names and defaults of mpicost, Plumbline's own benchmark program."""

from __future__ import annotations

from postprocess.model.case import Case

PAPERS = 51  #: trials of each case in the papers

CACHES = ("flush", "warm")

SYNCHRONISERS = ("dissemination", "barrier", "window")

TOURNAMENT = "tournament"  #: the routine whose ranks all play in pairs, a round a case

OWN = "mpicost"  #: Plumbline's own program: its cases have trials, and are those of the papers

PROGRAMS = ("mpicost", "osu", "imb")  #: Plumbline's own, and the reference benchmarks

COMPARED = "compared"  #: in the method of a start of OSU or IMB: its sizes that are no mere warm-up

#: Of a calibration that nobody asked for, by program; too few for more than provisional references. One of
#: OSU or IMB takes minutes, and each of its values is a mean already.
AUTOMATIC_LAUNCHES = {"mpicost": 5, "osu": 1, "imb": 1}


#: Sizes in bytes, by routine.
CONTROLS = {"control_compute": [8], "control_memory": [1_000_000], "control_timer": [8]}


def is_control(case: Case) -> bool:
    """Whether no MPI has a part in what a case times."""
    return case.program == "mpicost" and case.routine in CONTROLS


TRIALS = PAPERS  #: of mpicost, per case
CACHE = "flush"  #: of mpicost, before each trial
WARM = "warm"  #: of OSU and IMB, whose loops leave the caches so, and of the comparison of nodes
SYNC = "dissemination"  #: what starts the processes of a trial of mpicost together


def program_order(program: str) -> tuple[bool, str]:
    """Plumbline's own program first, then the others by name."""
    return program != OWN, program
