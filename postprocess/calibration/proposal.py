"""Compare calibrations with the stored references: the proposed changes. Nothing is decided here.

Nothing is refused; what a person should see before committing is marked. A reference that moved to the slow
side by more than its old band would bless a slowdown: whoever measured a broken machine would get it green.
"""

from __future__ import annotations

import difflib
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base import units
from postprocess.calibration.disturbance import Mark, MarkKind, disturbed, one_moment, one_node_set
from postprocess.calibration.regression_guard import absorbs, as_if_enough
from postprocess.calibration.samples import Sample, different
from postprocess.calibration.update import origin_of, rows_of
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import ENOUGH_LAUNCHES, Reference
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import read_origin
from postprocess.stats.band import band, least_of, slow_distance
from postprocess.stats.sample_size import TARGET
from postprocess.stats.shrinkage import with_priors

NEW, MOVED, SAME, UNMEASURED, VANISHES = "new", "moved", "same", "not measured", "vanishes"
ABSORBS = Mark(MarkKind.ABSORBS, "absorbs a slowdown")


@dataclass(frozen=True)
class Change:
    """What a proposal does to one case."""

    case: Case
    kind: str
    old: Reference | None
    new: Reference | None
    marks: tuple[Mark, ...] = ()

    @property
    def slowdown(self) -> float | None:
        """How many times as slow the new center is as the old one; None where one is missing."""
        if self.old is None or self.new is None or self.old.unit != self.new.unit:
            return None
        return units.slowdown(self.new.center, self.old.center, self.new.unit)

    @property
    def bands(self) -> float | None:
        """The move in widths of the old band, of the side to which it went; slow is positive."""
        if self.old is None or self.slowdown is None:
            return None
        log = math.log(self.slowdown)
        width = math.log1p(width_of(self.old)) if log >= 0 else fast_width(self.old)
        return log / width if width > 0 else math.copysign(math.inf, log) if log else 0.0

    @property
    def width(self) -> float | None:
        """How much slower than the new center the slow limit is, as a fraction."""
        return width_of(self.new) if self.new else None

    def entry(self) -> dict[str, Any]:
        """As plain data; infinite widths are null."""
        bands = self.bands if self.bands is None or math.isfinite(self.bands) else None
        return {
            "key": self.case.key,
            "change": self.kind,
            "unit": (self.new or self.old).unit,  # type: ignore[union-attr]
            "old": self.old.center if self.old else None,
            "new": self.new.center if self.new else None,
            "launches": self.new.launches if self.new else 0,
            "slower": self.slowdown - 1 if self.slowdown else None,
            "bands": bands,
            "width": self.width,
            "marks": [mark.text for mark in self.marks],
        }


@dataclass(frozen=True)
class Proposal:
    """The proposed file of one place, and what it changes."""

    place: ReferencePlace
    stored: Path | None
    changes: tuple[Change, ...]  #: the worst first
    rows: Mapping[Case, Reference]
    origin: Mapping[str, Any]

    def write(self, root: Path) -> Path:
        """Write it below a folder."""
        path = reference_file.location(root, *self.place)
        reference_file.write(path, self.rows.values(), self.origin)
        return path

    def difference(self, written: Path) -> str:
        """The stored file and the one that was written as a unified difference."""
        old = self.stored.read_text() if self.stored else ""
        name = "/".join(self.place) + ".tsv"
        lines = difflib.unified_diff(
            old.splitlines(True), written.read_text().splitlines(True), f"a/{name}", f"b/{name}"
        )
        return "".join(lines)


def propose(
    place: ReferencePlace, measured: Mapping[Case, Sample], stored: Path | None
) -> Proposal:
    """What the launches of one place make of its references.

    :param stored: the reviewed file, if there is one
    :raises UsageError: if it is damaged, or simulated time does not repeat
    """
    old = reference_file.load(stored, *place) if stored else {}
    origin = read_origin(stored) if stored else None
    gone = replaced(origin, measured)
    stay = {case: each for case, each in old.items() if case.program not in gone}
    if origin:
        told = {name: each for name, each in origin["programs"].items() if name not in gone}
        origin = {**origin, "programs": told}
    path = stored or Path("/".join(place))
    rows = stay | rows_of(path, measured)
    new_origin = origin_of(origin, stay, measured)
    changes = compared(with_priors(old), with_priors(rows), measured, gone)
    return Proposal(place, stored, tuple(sorted(changes, key=worst_first)), rows, new_origin)


def replaced(origin: Mapping[str, Any] | None, measured: Mapping[Case, Sample]) -> set[str]:
    """The programs that were measured by another method than what is stored: nothing of that can stay."""
    found = set()
    for case, sample in measured.items():
        told = (origin or {}).get("programs", {}).get(case.program)
        method = sample.launches[-1].facts["method"]
        if told and any(different(c["method"], method) for c in provenance.calibrations(told)):
            found.add(case.program)
    return found


def compared(
    old: Mapping[Case, Reference],
    new: Mapping[Case, Reference],
    measured: Mapping[Case, Sample],
    gone: Iterable[str],
) -> list[Change]:
    """One change for each case of either."""
    found = []
    for case in sorted(old.keys() | new.keys()):
        before, after = old.get(case), new.get(case)
        kind = kind_of(case, before, after, measured)
        marks = marks_of(before, after, measured.get(case))
        if case.program in gone and before and after:
            told = "measured by another method than before"
            marks = (Mark(MarkKind.OTHER_METHOD, told), *marks)
        found.append(Change(case, kind, before, after, tuple(marks)))
    return found


def kind_of(
    case: Case,
    before: Reference | None,
    after: Reference | None,
    measured: Mapping[Case, Sample],
) -> str:
    """What becomes of a case, in a word."""
    if after is None:
        return VANISHES
    if before is None:
        return NEW
    if case not in measured:
        return UNMEASURED
    plain = [replace(each, prior=None) for each in (before, after)]
    return SAME if plain[0] == plain[1] else MOVED


def marks_of(
    before: Reference | None, after: Reference | None, sample: Sample | None
) -> tuple[Mark, ...]:
    """What a person should know before taking the reference of a case, the worst first."""
    if after is None or sample is None:
        return ()
    marks = []
    if before and absorbs(before, after):
        marks.append(ABSORBS)
    by_hand = sample.launches[-1].by_hand
    if options := spelled(by_hand):
        told = f"options by hand, which no night has: {options}"
        marks.append(Mark(MarkKind.BY_HAND, told))
    if shell := assignments(by_hand.get("shell", {})):
        told = f"measured with {shell} in the shell, which every night must have then"
        marks.append(Mark(MarkKind.SHELL, told))
    if after.exact:
        return tuple(marks)
    marks += disturbed(sample)
    marks += noise_of(after)
    marks += one_moment(sample)
    marks += one_node_set(sample)
    if after.provisional:
        told = f"provisional: {after.launches} of {ENOUGH_LAUNCHES} launches"
        marks.append(Mark(MarkKind.PROVISIONAL, told))
    return tuple(marks)


def noise_of(reference: Reference) -> list[Mark]:
    """That the noise of a case hides more than a slowdown of 10%, or is unknown; empty if neither is so."""
    if reference.launches < 2:
        return [Mark(MarkKind.ONE_LAUNCH, "one launch: its noise is unknown")]
    width = width_of(as_if_enough(reference))
    least = least_of(reference.case)
    if width <= TARGET:
        return []
    floor = f"the noise is {width / least:.0f} times the floor of {100 * least:g}%"
    return [Mark(MarkKind.BLIND, f"blind below {width:+.0%}: {floor}")]


def spelled(options: Mapping[str, Any]) -> str:
    """Options by hand as they are given."""
    words = ["oversubscribe"] if options.get("oversubscribe") else []
    return ", ".join([*words, *filter(None, [assignments(options.get("set_env", {}))])])


def assignments(variables: Mapping[str, str]) -> str:
    """Variables with their values."""
    return ", ".join(f"{name}={value}" for name, value in sorted(variables.items()))


def width_of(reference: Reference) -> float:
    """How much slower than the center the slow limit of a band is, as a fraction."""
    return math.expm1(slow_distance(reference, band(reference)))


def fast_width(reference: Reference) -> float:
    """Distance of the fast limit from the center, on the logarithm."""
    fast = band(reference).fast_limit
    return abs(math.log(fast / reference.center)) if fast > 0 else math.inf


def worst_first(change: Change) -> tuple[bool, bool, float, Case]:
    """Order: what absorbs a slowdown, what is marked, what moved most; then by name."""
    moved = abs(math.log(change.slowdown)) if change.slowdown else 0.0
    return (ABSORBS not in change.marks, change.kind == SAME, -moved, change.case)
