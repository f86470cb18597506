"""Compare calibrations with the stored references and propose changes for people to review.

Nothing is refused; what a person should see before committing is marked. A reference that moved to the slow
side by more than its old band would accept a slowdown: a broken machine would pass from then on.
"""

import difflib
import math
import statistics
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from postprocess.base import files, formats
from postprocess.base.formats import align_rows, plural, quantity, wrap_all
from postprocess.calibration import machine_load
from postprocess.calibration.samples import CaseSample, ExcludedLaunches, list_differing_keys
from postprocess.calibration.update import build_provenance, build_references, is_absorbing
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import ENOUGH_LAUNCHES, Reference
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import add_noise, read_provenance
from postprocess.references.comparability import read_all_placed
from postprocess.stats.band import compute_band, compute_slow_distance, find_narrowest_band

NEW, MOVED, SAME, UNMEASURED, VANISHES = "new", "moved", "same", "not measured", "vanishes"
ABSORBS = machine_load.Mark(machine_load.MarkKind.ABSORBS, "absorbs a slowdown")


@dataclass(frozen=True)
class ReferenceChange:
    case: Case
    kind: str
    old: Reference | None
    new: Reference | None
    marks: tuple[machine_load.Mark, ...] = ()

    @property
    def slowdown(self) -> float | None:
        """How many times as slow the new center is as the old one; None if one is missing."""
        if self.old is None or self.new is None or self.old.unit != self.new.unit:
            return None
        return formats.compute_slowdown(self.new.center, self.old.center, self.new.unit)

    @property
    def bands(self) -> float | None:
        """The move in widths of the old band on the side that it went to; slow is positive."""
        if self.old is None or self.slowdown is None:
            return None
        log = math.log(self.slowdown)
        width = math.log1p(compute_band_width(self.old)) if log >= 0 else compute_fast_width(self.old)
        return log / width if width > 0 else math.copysign(math.inf, log) if log else 0.0

    @property
    def width(self) -> float | None:
        """How much slower than the new center the slow limit is, as a fraction."""
        return compute_band_width(self.new) if self.new else None

    def entry(self) -> dict[str, Any]:
        """Return the change as plain data; infinite widths become null."""
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
    changes: tuple[ReferenceChange, ...]  #: the worst first
    rows: Mapping[Case, Reference]
    origin: Mapping[str, Any]

    def write(self, root: Path) -> Path:
        path = reference_file.locate_references(root, *self.place)
        reference_file.write_references(path, self.rows.values(), self.origin)
        return path

    def difference(self, written: Path) -> str:
        """Return the unified diff from the stored file to the written one."""
        old = files.read_text(self.stored) if self.stored else ""
        name = "/".join(self.place) + ".tsv"
        lines = difflib.unified_diff(
            old.splitlines(True), files.read_text(written).splitlines(True), f"a/{name}", f"b/{name}"
        )
        return "".join(lines)


def propose_references(
    place: ReferencePlace, measured: Mapping[Case, CaseSample], stored: Path | None
) -> Proposal:
    """Propose references of one place from its launches.

    :param stored: the reviewed file, if there is one
    :raises UsageError: if it is damaged, or simulated time does not repeat
    """
    old = reference_file.load_references(stored, *place) if stored else {}
    origin = earlier = read_provenance(stored) if stored else None
    gone = find_replaced_programs(origin, measured)
    stay = {case: reference for case, reference in old.items() if case.program not in gone}
    if origin:
        programs = {name: entry for name, entry in origin["programs"].items() if name not in gone}
        origin = {**origin, "programs": programs}
    path = stored or Path("/".join(place))
    rows = stay | build_references(path, measured)
    new_origin = build_provenance(origin, stay, measured)
    before = add_noise(old, read_all_placed(old, earlier)) if earlier else {}
    changes = compare_references(before, add_noise(rows, read_all_placed(rows, new_origin)), measured, gone)
    return Proposal(place, stored, tuple(sorted(changes, key=change_sort_key)), rows, new_origin)


def find_replaced_programs(origin: Mapping[str, Any] | None, measured: Mapping[Case, CaseSample]) -> set[str]:
    """Find programs measured by another method than their stored references, which cannot stay then."""
    replaced = set()
    for case, sample in measured.items():
        entry = (origin or {}).get("programs", {}).get(case.program)
        method = sample.launches[-1].facts["method"]
        if entry and any(list_differing_keys(c["method"], method) for c in provenance.list_calibrations(entry)):
            replaced.add(case.program)
    return replaced


def compare_references(
    old: Mapping[Case, Reference],
    new: Mapping[Case, Reference],
    measured: Mapping[Case, CaseSample],
    gone: Iterable[str],
) -> list[ReferenceChange]:
    changes = []
    for case in sorted(old.keys() | new.keys()):
        before, after = old.get(case), new.get(case)
        kind = classify_change(case, before, after, measured)
        marks = collect_marks(before, after, measured.get(case))
        if case.program in gone and before and after:
            text = "measured by another method than before"
            marks = (machine_load.Mark(machine_load.MarkKind.OTHER_METHOD, text), *marks)
        changes.append(ReferenceChange(case, kind, before, after, tuple(marks)))
    return changes


def classify_change(
    case: Case, before: Reference | None, after: Reference | None, measured: Mapping[Case, CaseSample]
) -> str:
    if after is None:
        return VANISHES
    if before is None:
        return NEW
    if case not in measured:
        return UNMEASURED
    plain = [replace(reference, prior=None, evidence=None, session_prior=None) for reference in (before, after)]
    return SAME if plain[0] == plain[1] else MOVED


def collect_marks(
    before: Reference | None, after: Reference | None, sample: CaseSample | None
) -> tuple[machine_load.Mark, ...]:
    """Collect the marks that a person should know before taking a reference, the worst first."""
    if after is None or sample is None:
        return ()
    marks = []
    if before and is_absorbing(before, after):
        marks.append(ABSORBS)
    by_hand = sample.launches[-1].by_hand
    if options := format_options(by_hand):
        text = f"set by hand, which no night has: {options}"
        marks.append(machine_load.Mark(machine_load.MarkKind.BY_HAND, text))
    if shell := format_assignments(by_hand.get("shell", {})):
        text = f"measured with {shell} in the shell, which every night must have then"
        marks.append(machine_load.Mark(machine_load.MarkKind.SHELL, text))
    if after.exact:
        return tuple(marks)
    marks += machine_load.find_disturbances(sample)
    marks += describe_noise(after)
    marks += machine_load.check_one_day(sample)
    marks += machine_load.check_few_sessions(after) if after.session_prior else []
    marks += machine_load.check_one_node_set(sample)
    if after.few_launches:
        text = f"provisional: {after.launches} of {ENOUGH_LAUNCHES} launches"
        marks.append(machine_load.Mark(machine_load.MarkKind.PROVISIONAL, text))
    return tuple(marks)


TARGET = 0.10  #: slowdown that every case should detect


def describe_noise(reference: Reference) -> list[machine_load.Mark]:
    """Describe noise that is unknown or hides a slowdown of more than 10%; empty otherwise."""
    if reference.launches < 2:
        return [machine_load.Mark(machine_load.MarkKind.ONE_LAUNCH, "one launch: its noise is unknown")]
    width = compute_band_width(reference)
    least = find_narrowest_band(reference.case)
    if width <= TARGET:
        return []
    floor = f"the noise is {width / least:.0f} times the floor of {100 * least:g}%"
    return [machine_load.Mark(machine_load.MarkKind.BLIND, f"not sensitive below {width:+.0%}: {floor}")]


def format_options(options: Mapping[str, Any]) -> str:
    words = ["oversubscribe"] if options.get("oversubscribe") else []
    return ", ".join([*words, *filter(None, [format_assignments(options.get("set_env", {}))])])


def format_assignments(variables: Mapping[str, str]) -> str:
    return ", ".join(f"{name}={value}" for name, value in sorted(variables.items()))


def compute_band_width(reference: Reference) -> float:
    """Compute the distance of the slow limit from the center, as a fraction of the center."""
    return math.expm1(compute_slow_distance(reference, compute_band(reference)))


def compute_fast_width(reference: Reference) -> float:
    """Compute the distance of the fast limit from the center, in natural logarithms."""
    fast = compute_band(reference).fast_limit
    return abs(math.log(fast / reference.center)) if fast > 0 else math.inf


def change_sort_key(change: ReferenceChange) -> tuple[bool, bool, float, Case]:
    """Return a key that sorts absorbed slowdowns first, then by size of the move, then by name."""
    moved = abs(math.log(change.slowdown)) if change.slowdown else 0.0
    return (ABSORBS not in change.marks, change.kind == SAME, -moved, change.case)


NEW_HEAD = ("new", "bytes", "cases", "launches", "median band", "widest")
#: Largest bytes and name of each class of sizes; cases without a payload have their own.
SIZES = ((0, "none"), (1_000, "to 1 kB"), (100_000, "to 100 kB"), (math.inf, "above"))


def format_proposal(proposal: Proposal, most: int) -> list[str]:
    """Format the changes of one place, at most ``most`` cases, and the number of each kind of mark.

    More new cases than that are summarised by program and class of sizes.
    """
    name = "/".join(proposal.place)
    against = str(proposal.stored) if proposal.stored else "none is stored"
    counts = Counter(change.kind for change in proposal.changes)
    lines = wrap_all([f"{name}: {plural(len(proposal.changes), 'case')} against {against}"])
    lines.append("  " + ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())))
    listed = [change for change in proposal.changes if (change.kind not in (SAME, UNMEASURED))]
    if counts[NEW] > most:
        lines += [f"  {line}" for line in summarise_new([e for e in listed if e.kind == NEW])]
        listed = [change for change in listed if change.kind != NEW]
    for change in listed[:most]:
        lines.append(f"  {name_change(change)}  {change.case.key}")
        texts = [mark.text for mark in change.marks if mark.kind.of_one and mark != ABSORBS]
        lines += wrap_all([describe_change(change), *texts], "      ")
    if len(listed) > most:
        lines.append(f"  and {plural(len(listed) - most, 'case')} more: --json FILE lists all")
    return lines + wrap_all(count_marks(proposal.changes), "  ")


def summarise_new(changes: Iterable[ReferenceChange]) -> list[str]:
    """Summarise new cases, one line per program and class of sizes."""
    groups: dict[tuple[str, int], list[ReferenceChange]] = {}
    for change in changes:
        size = next(n for n, (most, _) in enumerate(SIZES) if change.case.bytes <= most)
        groups.setdefault((change.case.program, size), []).append(change)
    rows, widest = [NEW_HEAD], []
    for (program, size), members in sorted(groups.items()):
        widest.append(max(members, key=lambda member: member.width or 0.0))
        launches = sorted({member.new.launches for member in members if member.new})
        rows.append(
            (
                program,
                SIZES[size][1],
                str(len(members)),
                "-".join(map(str, dict.fromkeys((launches[0], launches[-1])))),
                f"{statistics.median(member.width or 0.0 for member in members):+.0%}",
                f"{widest[-1].width or 0.0:+.0%}",
            )
        )
    head, *lines = align_rows(rows, texts=len(NEW_HEAD))
    below = (f"  widest: {wide.case.key}" for wide in widest)
    pairs = [line for pair in zip(lines, below, strict=True) for line in pair]
    return [head, *pairs, "--json FILE lists each case"]


def count_marks(changes: Sequence[ReferenceChange]) -> list[str]:
    """List the kinds of marks with their numbers of cases, the gravest first."""
    summaries = []
    absorbing = sum(ABSORBS in change.marks for change in changes)
    if absorbing:
        summaries.append(
            f"WARNING: a slowdown is absorbed in {plural(absorbing, 'case')}: slower than the stored band "
            "allows. Taken, it would be the new normal; find its cause first"
        )
    everything = [mark for change in changes for mark in change.marks]
    for kind in (kind for kind in machine_load.MarkKind if not kind.of_one):
        texts = Counter(mark.text for mark in everything if mark.kind is kind)
        if texts:
            most = max(texts, key=lambda text: (texts[text], text))
            others = "" if len(texts) == 1 else ", or alike"
            summaries.append(f"{plural(texts.total(), 'case')}: {most}{others}")
    if gone := [change for change in changes if change.kind == VANISHES]:
        summaries.append(f"WARNING: {plural(len(gone), 'case')} would have no reference any more")
    return summaries


def name_change(change: ReferenceChange) -> str:
    return ABSORBS.text.upper() if ABSORBS in change.marks else change.kind


def describe_change(change: ReferenceChange) -> str:
    """Describe the old and the new reference: ``1.02 us to 1.33 us of 12 launches, band +5%: +30.0%``."""
    sides = [quantity(reference.center, reference.unit) for reference in (change.old, change.new) if reference]
    text = " to ".join(sides)
    if change.new:
        text += f" of {plural(change.new.launches, 'launch', 'es')}, band {change.width:+.0%}"
    if change.slowdown is None or change.bands is None:
        return text
    bands = f"{change.bands:+.2f}" if math.isfinite(change.bands) else "beyond"
    return f"{text}: {change.slowdown - 1:+.1%}, {bands} of the old band"


def describe_excluded(passed: Sequence[ExcludedLaunches]) -> list[str]:
    """Describe the launches of the ledger that do not count, with the reason."""
    return [
        f"{'/'.join(group.place)}, {group.program}: {plural(group.launches, 'earlier launch', 'es')} left out: "
        f"another {', '.join(group.differing)} than the last one"
        for group in passed
    ]
