"""The first screen of a session's page: what the session can see, and what to do next at which cost."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from postprocess.base import formats
from postprocess.model.case import LaunchPlace
from postprocess.model.groups import CaseGroup
from postprocess.model.reference import MOST_SESSIONS
from postprocess.model.session import list_site_words
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.report.case_lines import TOLD, format_again, list_groups
from postprocess.report.sensitivity import STEPS, count_known, describe_tonight, select_with_power
from postprocess.results.query import JUDGING
from postprocess.results.summary import SessionSummary
from postprocess.stats.sequence import APART_MINUTES

MOST_PROPOSED = 4
FIRST_PHASES = ("set-up", "build", "calibration")  #: of a first night
BLIND_MACHINE = (
    "More nights like this do not see even twice the time in most cases: the noise is the machine's; "
    "measure while nothing else runs"
)
UNHELD = (Verdict.NO_REFERENCE, Verdict.NOT_COMPARABLE)


@dataclass(frozen=True)
class Proposal:
    """Something to do next."""

    why: str
    command: str  #: or empty, if waiting is all
    cost: str  #: such as ``about 12 s``; empty if it is unknown


@dataclass(frozen=True)
class NumberedGroup:
    """Cases of which the same is said, with the command that measures all of them again."""

    number: int  #: of ``run --failed SESSION:NUMBER``
    group: CaseGroup
    failed: bool
    again: str

    @property
    def explained(self) -> bool:
        """Whether it is one case whose reason tells its value and reference."""
        group = self.group
        return len(group.results) == 1 and group.verdict in TOLD and bool(group.reason)


def list_numbered_groups(summary: SessionSummary) -> list[NumberedGroup]:
    """List the groups of cases that are not healthy, as the terminal does."""
    return [
        NumberedGroup(
            number,
            group,
            any(not result.counts_as_healthy(summary.strict) for result in group.results),
            format_again(group, number, summary),
        )
        for number, group in enumerate(list_groups(summary), 1)
    ]


def describe_sight(results: Sequence[CaseResult]) -> str:
    """Describe what would be called tonight; empty if nothing is known of it."""
    known = select_with_power(results)
    if not known:
        return ""
    return f"tonight would see, of {count_known(known, results)}: {describe_tonight(known)}"


def propose_next(summary: SessionSummary) -> list[Proposal]:
    """Propose what to do next, the most urgent first."""
    return list(_propose(summary))[:MOST_PROPOSED]


def _propose(summary: SessionSummary) -> Iterator[Proposal]:
    broken = [result for result in summary.failed if result.verdict not in UNHELD]
    again = f"./plumbline run --failed {summary.session}"
    if broken:
        few = formats.plural(len(broken), "failed case")
        yield Proposal(f"Measure the {few} again", again, estimate_cost(summary, broken))
    if why := describe_uncalibrated(summary.results):
        yield Proposal(f"Calibrate: {why}", format_command("calibrate", summary), "")
    astray = [
        result for result in summary.results if result.verdict is Verdict.NOT_COMPARABLE and not result.outdated
    ]
    if astray:
        what = f"{formats.plural(len(astray), 'case')} cannot be compared with the reference"
        why = f"{what}: do what the reason says, then measure again"
        yield Proposal(why, again, estimate_cost(summary, astray))
    if suspects := [result for result in summary.results if result.verdict is Verdict.SUSPECT]:
        what = formats.plural(len(suspects), "suspect case")
        why, verb = f"Nights decide on {what}", "nightly"
        if summary.mode in JUDGING:
            why, verb = f"{why}; or measure again {APART_MINUTES} minutes after this one", "confirm"
        yield Proposal(why, format_command(verb, summary), estimate_cost(summary, suspects))
    if gain := describe_gain(summary.results):
        yield Proposal(gain, format_command("nightly", summary), f"{_measure_duration(summary)} a night")


def describe_uncalibrated(results: Iterable[CaseResult]) -> str:
    """Describe of which cases only a calibration makes a reference that judges them; empty if of none."""
    told = Counter(
        "" if result.verdict is Verdict.NO_REFERENCE else result.outdated
        for result in results
        if result.verdict is Verdict.NO_REFERENCE or result.outdated
    )
    found = []
    if missing := told.pop("", 0):
        found.append(f"{formats.plural(missing, 'case')} {'has' if missing == 1 else 'have'} no reference")
    found += [
        f"the reference of {formats.plural(number, 'case')} {outdated}" for outdated, number in told.items()
    ]
    return "; ".join(found)


def format_command(verb: str, summary: SessionSummary) -> str:
    """Format a command for the site on which a session measured."""
    return shlex.join(["./plumbline", verb, *list_site_words(summary.site)])


def describe_gain(results: Sequence[CaseResult]) -> str:
    """Describe what further good nights will see that this one does not; empty if they see no more."""
    known = select_with_power(results)
    tonight = [result.detectable for result in known]
    learned = [result.detectable_learned for result in known]
    step = next((each for each in STEPS if _count(learned, each) > _count(tonight, each)), None)
    if step is None:
        few = 2 * _count(learned, STEPS[0]) < len(known)
        return BLIND_MACHINE if few else ""
    name = "2 times slower" if step == 1.0 else f"{step:.0%} slower"
    now, then = _count(tonight, step), _count(learned, step)
    of = formats.plural(len(known), "case")
    many = f"{formats.format_whole(then)} of {of}, now in {formats.format_whole(now)}"
    told = f"with {MOST_SESSIONS} that go well {name} is called in {many}"
    return f"Let nights pass: {told}"


def estimate_cost(summary: SessionSummary, results: Iterable[CaseResult]) -> str:
    """Estimate how long the launches of some cases take, by how long they took; empty if none is known."""
    places = {LaunchPlace.of(result.case) for result in results}
    took = [launch.seconds for launch in summary.launches if LaunchPlace.of_launch(launch) in places]
    return f"about {formats.duration(sum(took))}" if sum(took) else ""


def _count(limits: Iterable[float | None], step: float) -> int:
    return sum(limit is not None and limit <= step for limit in limits)


def _measure_duration(summary: SessionSummary) -> str:
    """Measure how long a night like this one takes, by its phases, once all is built and calibrated."""
    later = (seconds for phase, seconds in summary.phases.items() if phase not in FIRST_PHASES)
    return formats.duration(sum(later))
