"""Find mistakes in reference files that no loader refuses: implausible or unfounded numbers.

A file with such a fault still loads, because an odd machine is not a broken file, but a reviewer should see it.
It cannot find a number that was changed in both the table and the provenance, nor a case that was renamed in
both. Simulated references have no headlines: a plausible but wrong center is found by the next night.
"""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

from postprocess.base.formats import DATE_FORMAT, MEGABYTES, RATIO, SECONDS, quantity
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import OWN_PROGRAMS
from postprocess.references import decisions, provenance, reference_file
from postprocess.references.comparability import PlacedLaunches, read_all_placed
from postprocess.references.provenance import read_provenance
from postprocess.references.reference_file import KEYS
from postprocess.stats.band import estimate_references
from site_configs.schema.waivers import DIFFERENCES

#: Smallest and largest center: calls take from a nanosecond to an hour, rates are limited by memory.
PLAUSIBLE: dict[str, tuple[float, float]] = {
    SECONDS: (1e-9, 3600.0),
    MEGABYTES: (1e-3, 1e8),
    RATIO: (1e-3, 1e6),
}
ABSURD_SPREAD = math.log(10)  #: launches of one machine do not differ by a factor of ten
#: Allowed relative difference between the table and what follows from the headlines
AGREEMENT = 1e-9
FOLLOWING = ("launches", "center", "spread")  #: columns that follow from the headlines
SUDDEN = 0.2  #: share of a smaller message's time below which a larger one is suspicious
AHEAD = timedelta(days=1)  #: how far ahead a date may be, for wrong clocks
#: The suite measures times; only OSU and IMB measure rates.
ONLY_TIMES = OWN_PROGRAMS


def lint_reference(path: Path) -> list[str]:
    """Find every fault of a reference file and its provenance, including numbers that cannot be right."""
    faults = reference_file.lint_reference_file(path)
    if faults:
        return faults
    references = reference_file.load_references(path, *ReferencePlace.of_file(path))
    origin = read_provenance(path)
    rows = {case: number for number, case in enumerate(references, 2)}
    problems = [f"{path}: row {rows[case]}: {text}" for case, text in find_implausible(references)]
    problems += [
        f"{path}: row {rows[case]}: {text}"
        for case, text in find_unfounded(references, read_all_placed(references, origin))
    ]
    problems += [f"{path}: row {rows[case]}: {text}" for case, text in find_steep_drops(references)]
    problems += [
        f"{provenance.locate_provenance(path)}: {text}" for text in find_unlikely_provenance(references, origin)
    ]
    return problems


def lint_references(root: Path) -> list[str]:
    """Find every fault of the files below a folder of references, including expected failures."""
    loadable = reference_file.lint_reference_files(root)
    faults = list(loadable)
    for path in sorted(root.glob("*/*/*.tsv")):
        if path.relative_to(root).parts[0] != "historical":
            faults += [text for text in lint_reference(path) if text not in loadable]
    for path in sorted(root.glob(f"*/{reference_file.EXPECTED}")):
        faults += lint_expected(path)
    return faults


def lint_expected(path: Path) -> list[str]:
    """Find every fault of a file of expected failures, including rows that match no case with a reference."""
    cases: list[Case] = []
    for file in sorted(path.parent.glob("*/*.tsv")):
        if not reference_file.lint_reference_file(file):
            cases += reference_file.load_references(file, *ReferencePlace.of_file(file))
    return decisions.lint_expected_file(path, decisions.utc_today(), cases or None)


def find_implausible(known: Mapping[Case, Reference]) -> Iterator[tuple[Case, str]]:
    """Find numbers that no machine has."""
    for case, reference in known.items():
        least, most = PLAUSIBLE[reference.unit]
        if not least <= reference.center <= most:
            limits = f"{quantity(least, reference.unit)} to {quantity(most, reference.unit)}"
            yield (
                case,
                f"center: {quantity(reference.center, reference.unit)} is not within {limits}; correct it",
            )
        if reference.launches > 1 and not reference.exact and reference.spread == 0:
            yield (
                case,
                f"spread: 0 of {reference.launches} launches: none repeats to the last digit; correct it",
            )
        # of few launches, one may be disturbed
        if reference.spread > ABSURD_SPREAD and not reference.few_launches:
            factor = math.exp(reference.spread)
            yield case, f"spread: launches differ by a factor of {factor:.3g}; calibrate again"
        if case.program in ONLY_TIMES and reference.unit != SECONDS:
            yield case, f"unit: {case.program} measures times; write {SECONDS}"


def find_unfounded(
    known: Mapping[Case, Reference], launches: Mapping[Case, Sequence[PlacedLaunches]]
) -> Iterator[tuple[Case, str]]:
    """Find rows that do not follow from the headlines in the provenance.

    :param launches: those behind each case by placement of their ranks, those behind its row first
    """
    for case, reference in known.items():
        if reference.exact:
            continue
        if not launches.get(case):
            yield case, "has no headlines in the provenance; calibrate it again"
            continue
        row = launches[case][0]
        follows = estimate_references({case: row.values}, {case: row.sessions})[0]
        if not _is_all_alike(reference, follows):
            earlier = estimate_references({case: row.values})[0]  # files without sessions
            follows = reference if _is_all_alike(reference, earlier) else follows
        for column in FOLLOWING:
            ours, theirs = getattr(reference, column), getattr(follows, column)
            if not is_alike(ours, theirs):
                values = f"{ours!r}, and the headlines of the provenance make {theirs!r}"
                yield (case, f"{column} is not that of its launches: {values}; put back what was changed")


def _is_all_alike(ours: Reference, theirs: Reference) -> bool:
    return all(is_alike(getattr(ours, name), getattr(theirs, name)) for name in FOLLOWING)


def is_alike(ours: float, theirs: float) -> bool:
    """Return whether two numbers differ only by rounding."""
    return math.isclose(ours, theirs, rel_tol=AGREEMENT, abs_tol=1e-12)


def find_steep_drops(known: Mapping[Case, Reference]) -> Iterator[tuple[Case, str]]:
    """Find times that fall steeply as messages grow; with too few launches that is noise."""
    smaller: dict[tuple[Any, ...], Reference] = {}
    for case, reference in known.items():
        group = tuple(getattr(case, key) for key in KEYS if key != "bytes")
        before = smaller.get(group)
        if before is None or reference.few_launches or before.few_launches:
            smaller[group] = reference
            continue
        if reference.unit == SECONDS and reference.center < SUDDEN * before.center:
            takes = f"{quantity(reference.center, reference.unit)}, and {before.case.bytes} bytes"
            yield (case, f"center: takes {takes} {quantity(before.center, before.unit)}; look at both")
        smaller[group] = reference


def find_unlikely_provenance(known: Mapping[Case, Reference], origin: Mapping[str, Any]) -> Iterator[str]:
    """Find implausible entries of the provenance, ``programs: NAME: what``."""
    used = {case.program for case in known}
    keys = {case.key for case in known}
    for name, entry in sorted(origin["programs"].items()):
        title = f"programs: {name}"
        if name not in used:
            yield f"{title}: has no row in the table; remove it, or restore its rows"
        exact = any(reference.exact for case, reference in known.items() if case.program == name)
        for calibration in provenance.list_calibrations(entry):
            yield from (f"{title}: {text}" for text in _times(calibration))
            yield from (f"{title}: {text}" for text in _find_dangling(calibration, keys, exact))


def _times(told: Mapping[str, Any]) -> Iterator[str]:
    """Find dates in the future or before their session, and duplicate sessions."""
    made = _moment(told["date_utc"], DATE_FORMAT)
    if made and made > datetime.now(timezone.utc) + AHEAD:
        yield f"date_utc: {told['date_utc']} is in the future; correct it"
    for name, number in Counter(told["sessions"]).items():
        began = _moment(name.partition("-")[0], "%Y%m%dT%H%M%SZ")
        if number > 1:
            yield f"sessions: {name} is there {number} times; leave it once"
        if began is None:
            yield f"sessions: {name!r} is not a session's name; correct it"
        elif made and began > made:
            yield f"date_utc: {told['date_utc']} is before its session {name} began; correct it"


def _moment(text: str, form: str) -> datetime | None:
    try:
        return datetime.strptime(text, form).replace(tzinfo=timezone.utc)
    except ValueError:
        return None


def _find_dangling(told: Mapping[str, Any], keys: set[str], exact: bool) -> Iterator[str]:
    """Find headlines without a row, missing conditions, and launches of other sessions."""
    for key in provenance.list_values(told):
        if key not in keys:
            yield f"headlines: {key} has no row in the table; remove them, or restore the row"
    if "headlines" in told and provenance.SERIES in told:
        yield "headlines: not read beside series; remove them"
    if not exact and not isinstance(told.get("circumstances"), dict):
        yield "circumstances: are missing, so nothing compares with it; calibrate again"
    elif not exact:
        unknown = {name for name in told["circumstances"] if name not in DIFFERENCES}
        yield from (f"circumstances: {name!r} is unknown; remove it" for name in sorted(unknown))
    for series in told.get(provenance.SERIES, []):
        yield from _find_unexpected(series.get("launches", []), told["sessions"])


def _find_unexpected(launches: Sequence[Mapping[str, Any]], sessions: Sequence[str]) -> Iterator[str]:
    for name in sorted({launch.get("session", "") for launch in launches} - set(sessions)):
        yield f"series: a launch is of session {name!r}, which is not among sessions; correct it"
