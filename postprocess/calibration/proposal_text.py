"""Format a proposal: changes by severity, and remarks to consider before it is accepted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from postprocess.base.formats import align_rows, plural, quantity
from postprocess.calibration.disturbance import MarkKind
from postprocess.calibration.proposal import (
    ABSORBS,
    SAME,
    UNMEASURED,
    VANISHES,
    Proposal,
    ReferenceChange,
)
from postprocess.calibration.samples import ExcludedLaunches

HEAD = ("change", "old", "new", "slower by", "old bands", "band", "launches", "case")


def format_proposal(proposal: Proposal, most: int) -> list[str]:
    """Format the table of one place, with at most so many cases, and the number of each kind of mark."""
    name = "/".join(proposal.place)
    against = str(proposal.stored) if proposal.stored else "none is stored"
    counts = Counter(change.kind for change in proposal.changes)
    found = [f"{name}: {plural(len(proposal.changes), 'case')} against {against}"]
    found.append("  " + ", ".join(f"{number} {kind}" for kind, number in sorted(counts.items())))
    told = [each for each in proposal.changes if is_listed(each)]
    rows = [HEAD, *(format_change_row(each) for each in told[:most])]
    found += [f"  {line}" for line in align_rows(rows, texts=len(HEAD))] if told else []
    for change in told[:most]:
        own = [mark.text for mark in change.marks if mark.kind.of_one]
        found += [f"  {change.case.key}: {text}" for text in own]
    if len(told) > most:
        found.append(f"  and {plural(len(told) - most, 'case')} more: --json FILE has all")
    return found + [f"  {line}" for line in count_marks(proposal.changes)]


def is_listed(change: ReferenceChange) -> bool:
    """Return whether a case has a line of its own: not if it did not change."""
    return change.kind not in (SAME, UNMEASURED)


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
