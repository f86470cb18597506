"""Format a proposal: changes by severity, and remarks to consider before it is accepted."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Iterable, Sequence

from postprocess.base.formats import align_rows, plural, quantity
from postprocess.calibration.disturbance import MarkKind
from postprocess.calibration.proposal import (
    ABSORBS,
    NEW,
    SAME,
    UNMEASURED,
    VANISHES,
    Proposal,
    ReferenceChange,
)
from postprocess.calibration.samples import ExcludedLaunches

NEW_HEAD = ("new", "bytes", "cases", "launches", "median band", "widest", "widest of")
#: Largest bytes of each class of sizes, with its name; what has no payload is a class of its own.
SIZES = ((0, "none"), (1_000, "to 1 kB"), (100_000, "to 100 kB"), (math.inf, "above"))
HEAD = ("change", "old", "new", "slower by", "old bands", "band", "launches", "case")


def format_proposal(proposal: Proposal, most: int) -> list[str]:
    """Format the table of one place, with at most so many cases, and the number of each kind of mark.

    Of more new cases than that, there is a line for each program and class of sizes.
    """
    name = "/".join(proposal.place)
    against = str(proposal.stored) if proposal.stored else "none is stored"
    counts = Counter(change.kind for change in proposal.changes)
    found = [f"{name}: {plural(len(proposal.changes), 'case')} against {against}"]
    found.append("  " + ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())))
    told = [each for each in proposal.changes if (each.kind not in (SAME, UNMEASURED))]
    if counts[NEW] > most:
        found += [f"  {line}" for line in summarise_new([e for e in told if e.kind == NEW])]
        told = [each for each in told if each.kind != NEW]
    rows = [HEAD, *(format_change_row(each) for each in told[:most])]
    found += [f"  {line}" for line in align_rows(rows, texts=len(HEAD))] if told else []
    for change in told[:most]:
        own = [mark.text for mark in change.marks if mark.kind.of_one]
        found += [f"  {change.case.key}: {text}" for text in own]
    if len(told) > most:
        found.append(f"  and {plural(len(told) - most, 'case')} more: --json FILE lists all")
    return found + [f"  {line}" for line in count_marks(proposal.changes)]


def summarise_new(changes: Iterable[ReferenceChange]) -> list[str]:
    """Summarise new cases: a line for each program and class of sizes."""
    groups: dict[tuple[str, int], list[ReferenceChange]] = {}
    for each in changes:
        size = next(n for n, (most, _) in enumerate(SIZES) if each.case.bytes <= most)
        groups.setdefault((each.case.program, size), []).append(each)
    rows = [NEW_HEAD]
    for (program, size), some in sorted(groups.items()):
        widest = max(some, key=lambda each: each.width or 0.0)
        launches = sorted({each.new.launches for each in some if each.new})
        rows.append(
            (
                program,
                SIZES[size][1],
                str(len(some)),
                "-".join(map(str, dict.fromkeys((launches[0], launches[-1])))),
                f"{statistics.median(each.width or 0.0 for each in some):+.0%}",
                f"{widest.width or 0.0:+.0%}",
                widest.case.key,
            )
        )
    return [*align_rows(rows, texts=len(NEW_HEAD)), "--json FILE lists each case"]


def count_marks(changes: Sequence[ReferenceChange]) -> list[str]:
    """List the kinds of marks, the gravest first, each with the number of its cases."""
    found = []
    absorbing = sum(ABSORBS in each.marks for each in changes)
    if absorbing:
        found.append(
            f"WARNING: a slowdown is absorbed in {plural(absorbing, 'case')}: slower than the stored band "
            "allows. Taken, it would be the new normal; find its cause first"
        )
    everything = [mark for each in changes for mark in each.marks]
    for kind in (kind for kind in MarkKind if not kind.of_one):
        texts = Counter(mark.text for mark in everything if mark.kind is kind)
        if texts:
            most = max(texts, key=lambda text: (texts[text], text))
            others = "" if len(texts) == 1 else ", or alike"
            found.append(f"{plural(texts.total(), 'case')}: {most}{others}")
    if gone := [each for each in changes if each.kind == VANISHES]:
        found.append(f"WARNING: {plural(len(gone), 'case')} would have no reference any more")
    return found


def format_change_row(change: ReferenceChange) -> tuple[str, ...]:
    """Format the cells of a case."""
    old, new = change.old, change.new
    unit = (new or old).unit  # type: ignore[union-attr]
    percent = f"{change.slowdown - 1:+.1%}" if change.slowdown else "-"
    bands = change.bands
    widths = "-" if bands is None else f"{bands:+.2f}" if math.isfinite(bands) else "beyond"
    return (
        ABSORBS.text.upper() if ABSORBS in change.marks else change.kind,
        quantity(old.center, unit) if old else "-",
        quantity(new.center, unit) if new else "-",
        percent,
        widths,
        f"{change.width:+.0%}" if change.width is not None else "-",
        str(new.launches) if new else "-",
        change.case.key,
    )


def describe_excluded(passed: Sequence[ExcludedLaunches]) -> list[str]:
    """Describe the launches of the ledger that do not count, with the reason."""
    return [
        f"{'/'.join(each.place)}, {each.program}: {plural(each.launches, 'earlier launch', 'es')} left out: "
        f"another {each.differing} than the last one"
        for each in passed
    ]
