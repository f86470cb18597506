"""The bands of a job's comparable references, and why other values have none."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from postprocess.base.formats import SHOWN, first_of
from postprocess.base.sanitize import quote_words
from postprocess.judging.evaluate import judge_case, list_conditions
from postprocess.model.case import Case
from postprocess.model.conditions import conditions_of
from postprocess.model.launch import LaunchOutcome
from postprocess.model.plan import PlannedLaunch
from postprocess.model.verdict import Verdict
from postprocess.references.catalog import ReferenceSet, load_catalog
from postprocess.stats.band import compute_band, convert_to_reframe
from postprocess.stats.launches import locate_case
from reframe_checks.common.user_options import SOURCE, is_in_session

ELSEWHERE = "its ranks lay on other cores than those of its reference; bind them, or calibrate again"


@dataclass(frozen=True)
class ShownScale:
    """The unit in which ReFrame shows a value, and the factor to convert to it."""

    factor: float
    unit: str


def find_shown_scale(unit: str) -> ShownScale:
    """Return the unit that people read; in a session of ``./plumbline`` that of the records."""
    return ShownScale(1.0, unit) if is_in_session() else ShownScale(*SHOWN[unit])


@dataclass(frozen=True)
class KnownBands:
    """ReFrame's reference tuples, or how references differ, by a case's name in its launch."""

    tuples: dict[str, tuple]
    differences: dict[str, str]
    #: Fraction of the center at which a value is too fast, which fails nothing; negative if less is better.
    fast: dict[str, float]
    #: among those with a tuple: the reference cannot judge yet, or detects next to nothing
    provisional: set[str]

    def unasserted(self, name: str) -> Verdict:
        """Return the verdict of a value that ReFrame asserts against nothing."""
        return Verdict.NOT_COMPARABLE if name in self.differences else Verdict.NO_REFERENCE

    def complete(self, name: str, told: Sequence[Any]) -> list[Any]:
        """Complete ReFrame's record of an asserted value: value, center, both fractions, unit and result.

        It adds the fast end of the band, and marks a value that passed by a provisional reference. Numbers have
        only the digits that people read, except the value, which ``import`` compares with the records.
        """
        value, center, lower, upper, unit, result = told
        if (fast := self.fast.get(name)) is not None:
            lower, upper = (fast, upper) if fast < 0 else (lower, fast)
        if name in self.provisional and result == "pass":
            result = Verdict.PROVISIONAL.value
        ends = [None if end is None else round(end, 4) for end in (lower, upper)]
        return [float(f"{value:.10g}"), float(f"{center:.6g}"), *ends, unit, result]

    def explain_unjudged(self, names: Sequence[str], launches: Iterable[PlannedLaunch], site: str) -> str:
        """Explain why values were not compared with references; a calibrating command is on its own line.

        :param launches: those that ended well
        """
        different = [name for name in names if name in self.differences]
        if different:
            what = first_of(different, 3)
            return f"{Verdict.NOT_COMPARABLE}: {what}: {self.differences[different[0]]}"
        launch, case = next(
            (launch, case) for launch in launches for case in launch.cases if case.variable == names[0]
        )
        fix = f"set strict=False, or calibrate it:\n{format_calibration(launch, case, site)}"
        return f"{Verdict.NO_REFERENCE}: {first_of(names, 3)}; {fix}"


def format_calibration(launch: PlannedLaunch, case: Case, site: str) -> str:
    words: list[Any] = [SOURCE / "plumbline", "calibrate", "--site", site]
    words += ["--partition", case.partition, "--environment", case.environment]
    words += ["--program", case.program]
    words += ["--processes", case.processes, "--per-node", case.per_node]
    for flag, (value, usual) in list_conditions(launch, case).items():
        words += [flag, value] if value != usual else []
    return quote_words(words)


@cache
def load_references(place: tuple[str, str], roots: tuple[Path, ...]) -> ReferenceSet | None:
    """Load the references of a place once for all jobs of a run; None if it has none."""
    return load_catalog(roots, [place]).sets.get(place)


def find_bands(
    place: tuple[str, str], roots: Sequence[Path], whole: Iterable[tuple[PlannedLaunch, LaunchOutcome]]
) -> KnownBands:
    """Find the band of each case that has a comparable reference.

    :param place: ``system:partition`` and environment
    :param whole: the starts that ended well
    """
    reference_set = load_references(place, tuple(roots))
    bands = KnownBands({}, {}, {}, set())
    if reference_set is None:
        return bands
    for launch, outcome in whole:
        records = outcome.records
        assert records  # because it ended well
        conditions = conditions_of(records.run, launch.exact)
        right = [candidate for candidate in launch.cases if candidate.variable not in records.wrong]
        for case in right:
            if case not in reference_set.references:
                continue
            facts = conditions, case, launch.accepts, launch.by_hand
            measured = records.measurements[case.variable]
            lay = locate_case(measured.core_latency)
            if difference := reference_set.difference(*facts):
                bands.differences[case.variable] = difference
            elif (reference := reference_set.find_placed(case, lay)) is None:
                bands.differences[case.variable] = ELSEWHERE
            else:
                resolution = records.resolution(measured.unit)
                limits = compute_band(reference, resolution)
                bands.tuples[case.variable] = convert_to_reframe(reference, limits)
                end = limits.lower if limits.better == "lower" else limits.upper
                if not limits.blind:
                    bands.fast[case.variable] = end / reference.center - 1.0
                if judge_case(case, measured, reference, resolution).verdict == Verdict.PROVISIONAL:
                    bands.provisional.add(case.variable)
    return bands
