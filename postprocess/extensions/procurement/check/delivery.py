"""Launches handed in for what they are not: an offer's as a delivery, or one bidder's by another.

A launch is known by its token and, where time was measured, by its trials: no two take the same times.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from postprocess.base.formats import DATE_FORMAT, parse_utc, plural
from postprocess.extensions.procurement.check.data import read_sealed
from postprocess.extensions.procurement.check.offer import OpenedOffer
from postprocess.extensions.procurement.check.violations import Code, Violation
from postprocess.judging.outcome import CLOCKS_DIFFER, read_span


@dataclass(frozen=True)
class HandedIn:
    """What somebody hands in: by which key it is sealed, and what each of its launches is known by."""

    name: str
    key: str
    launches: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class SharedLaunches:
    """Launches that two have handed in."""

    names: tuple[str, str]
    text: str
    grave: bool  #: whether it is a reason to reject: both were not signed by one key

    def format(self) -> str:
        """Format it as a violation of a run rule."""
        title = Code.LAUNCH_SHARED.word + ("" if self.grave else " (noted)")
        return f"{title}: {self.text}; {Code.LAUNCH_SHARED.fix}"


def find_shared_launches(handed: Sequence[HandedIn]) -> list[SharedLaunches]:
    """Find who has handed in launches of another one."""
    found = []
    for one, two in combinations(handed, 2):
        known = {mark for launch in one.launches for mark in launch}
        count = sum(any(mark in known for mark in launch) for launch in two.launches)
        if count:
            of = plural(len(two.launches), "launch", "es")
            text = f"{two.name}: {count} of {of} are those of {one.name}"
            grave = not one.key or one.key != two.key
            found.append(SharedLaunches((one.name, two.name), text, grave))
    return found


def check_delivery(offered: OpenedOffer, parts: Sequence[OpenedOffer]) -> Iterator[Violation]:
    """Check that what was measured of a delivered machine was launched for it, after the offer was sealed.

    :param parts: folders of an acceptance with launches
    """
    known = {mark: each.place for each in offered.evidence for mark in each.marks}
    sealed = find_sealed(offered)
    before: dict[str, str] = {}
    for part in parts:
        name = part.stored.folder.name
        for each in part.evidence:
            place, marks = f"{name}/{each.place}", each.marks
            if taken := next((known[mark] for mark in marks if mark in known), ""):
                what = f"is the launch {taken} of the offer"
                yield Violation(Code.LAUNCH_OFFERED, place, what)
            elif twice := next((before[mark] for mark in marks if mark in before), ""):
                yield Violation(Code.LAUNCH_TWICE, place, f"is {twice}, too")
            span = read_span(each.launch, each.session)
            if span and span[0] < sealed - CLOCKS_DIFFER:
                began, when = (time.strftime(DATE_FORMAT, time.gmtime(t)) for t in (span[0], sealed))
                what = f"began {began}, and the offer was sealed {when}"
                yield Violation(Code.LAUNCH_BEFORE, place, what)
            before |= {mark: place for mark in marks}


def find_sealed(offered: OpenedOffer) -> int:
    """Find when an offer was sealed, in seconds since 1970: not before its last pass had ended."""
    told = read_sealed(offered.stored.folder)
    moments = [each.ended_utc for each in offered.stored.passes] + ([told] if told else [])
    return max((int(parse_utc(moment).timestamp()) for moment in moments), default=0)
