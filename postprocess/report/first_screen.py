"""The first screen of a session: what it can see, what is new, and what to do next at which cost."""

import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from postprocess.base import formats
from postprocess.base.formats import plural
from postprocess.base.grouping import group_pairs
from postprocess.model.case import LaunchPlace
from postprocess.model.groups import CaseGroup
from postprocess.model.options import OF_A_TRIAL, OF_LAUNCHES, SELECTING, select_words
from postprocess.model.reference import MOST_SESSIONS
from postprocess.model.session import list_site_words
from postprocess.model.verdict import CaseResult, Verdict, count_verdicts, is_healthy
from postprocess.report import overview
from postprocess.results.launch_costs import list_timed_jobs
from postprocess.results.query import FRESH, JUDGING, Night
from postprocess.results.summary import SessionSummary
from postprocess.stats.detection import APART_MINUTES, LONGEST_RUN

MOST_NIGHTS = 60  #: of a case, the last ones


@dataclass(frozen=True)
class Step:
    """A change of the level of a case that stays, or stayed for a while."""

    session: str  #: the first one on the new level
    text: str  #: such as ``+12.0% since 2026-11-03``


@dataclass(frozen=True)
class LaterRound:
    """A session that measured again what a night, or a round before this one, left suspect."""

    session: str
    started: str
    results: tuple[CaseResult, ...]  #: of the suspects alone
    exit_status: int

    @property
    def line(self) -> str:
        """Return the counts of what it found, such as ``3 cleared, 1 suspect``."""
        return overview.format_counts(count_verdicts(self.results)) or "none of them could be measured"

    @property
    def sentence(self) -> str:
        """What it found, as a night says it of its suspects."""
        return f"suspects measured again at {self.started}: {self.line}"

    @property
    def tone(self) -> str:
        """Return the tone of the worst case; ``bad`` if the session failed."""
        tones = {result.verdict.tone for result in self.results}
        if self.exit_status or "bad" in tones:
            return "bad"
        return "good" if tones == {"good"} else "fair"


@dataclass(frozen=True)
class Past:
    """The nights of a session's cases, by key, it the last, and what measured its suspects again."""

    nights: Mapping[str, Sequence[Night]] = field(default_factory=dict)
    steps: Mapping[str, Sequence[Step]] = field(default_factory=dict)
    problem: str = ""  #: why there is none, or empty
    rounds: Sequence[LaterRound] = ()


@dataclass(frozen=True)
class NewsItem:
    """Cases of which the same is new."""

    tone: str  #: ``bad``, ``fair`` or ``good``
    what: str  #: such as ``not healthy any more``
    results: tuple[CaseResult, ...]


@dataclass(frozen=True)
class News:
    """What a session says that the night before it did not."""

    day: str  #: of the night before; empty if there is none
    items: tuple[NewsItem, ...]

    @property
    def line(self) -> str:
        if not self.day:
            return "the first night of these cases: there is nothing to hold it against"
        told = [f"{plural(len(item.results), 'case')} {item.what}" for item in self.items]
        return f"since {self.day}: {', '.join(told) or 'nothing'}"


def find_news(summary: SessionSummary, past: Past) -> News:
    """Find what is new since the last night in which each case was measured."""
    before = {key: nights[-2] for key, nights in past.nights.items() if len(nights) > 1}
    kinds = group_pairs(
        (kind, result)
        for result in overview.sort_by_severity(summary.results)
        if (kind := _find_change(result, before.get(result.case.key), summary.strict))
    )
    unknown = [
        each for each in summary.results if before and each.value is not None and each.case.key not in before
    ]
    items = [NewsItem(tone, what, tuple(found)) for (tone, what), found in kinds.items()]
    if unknown:
        items.append(NewsItem("fair", "not in any night before", tuple(unknown)))
    return News(max((night.day for night in before.values()), default=""), tuple(items))


def _find_change(result: CaseResult, night: Night | None, strict: bool) -> tuple[str, str] | None:
    """Find how the verdict of a case changed: its tone and what to say of it; None if it says the same."""
    if night is None or night.verdict == result.verdict:
        return None
    was = is_healthy(night.verdict, strict)  # type: ignore[arg-type]
    now = result.counts_as_healthy(strict)
    if was and not now:
        return "bad", f"newly {result.verdict}"
    if result.verdict is Verdict.SUSPECT:
        return "fair", "newly suspect" if was else f"now suspect ({night.verdict} before)"
    if not now or (was and night.verdict != Verdict.SUSPECT):
        return None
    if result.verdict.tone == "good":
        return "good", f"no longer {night.verdict}"
    return "fair", f"now {result.verdict} ({night.verdict} before)"


def find_epochs(nights: Sequence[Night]) -> list[int]:
    """Find the nights from which another reference or another MPI library counts."""
    return [
        n
        for n in range(1, len(nights))
        if nights[n].library != nights[n - 1].library or _moved(nights[n - 1], nights[n])
    ]


def _moved(before: Night, after: Night) -> bool:
    """Return whether the reference of a night lies outside the band of the one before it."""
    if before.band is None or after.reference is None:
        return False
    return not before.band[0] <= after.reference <= before.band[1]


def conclude_session(summary: SessionSummary, rounds: Sequence[LaterRound]) -> tuple[str, str]:
    """Conclude a session, by what measured its suspects again too: its tone, and its verdict in a sentence."""
    if not rounds:
        fresh = summary.mode.endswith(FRESH)
        decides = "the session that these fresh launches were taken for decides" if fresh else ""
        return overview.find_tone(summary), overview.format_headline(summary, decides)
    last = list_last_results(rounds)
    told = overview.format_counts(count_verdicts(last)) or rounds[-1].line
    failed = rounds[-1].tone == "bad" or any(result.verdict.tone == "bad" for result in last)
    by_case = {result.case: result for result in last}
    results = tuple(by_case.get(result.case, result) for result in summary.results)
    decided = replace(summary, results=results)
    tone = "bad" if failed else overview.find_tone(decided)
    return tone, overview.format_headline(summary, f"measured again, {told}")


def list_last_results(rounds: Iterable[LaterRound]) -> list[CaseResult]:
    """List what the last session said of each suspect that was measured again."""
    return list({result.case: result for each in rounds for result in each.results}.values())


MOST_PROPOSED = 4
FIRST_PHASES = ("set-up", "build", "calibration")  #: of a first night
BLIND_MACHINE = (
    "More nights like this do not see even twice the time in most cases: the noise is the machine's; "
    "measure while nothing else runs"
)
DECIDED = (Verdict.CLEARED, Verdict.REGRESSED)  #: by sessions that measured a suspect again
UNHELD = (Verdict.NO_REFERENCE, Verdict.NOT_COMPARABLE)


@dataclass(frozen=True)
class Proposal:
    """Something to do next."""

    why: str
    command: str  #: or empty, if waiting is all
    cost: str  #: such as ``about 12 s``; empty if it is unknown

    @property
    def sentence(self) -> str:
        return f"{self.why} ({self.cost})" if self.cost else self.why


@dataclass(frozen=True)
class NumberedGroup:
    """Cases of which the same is said, with the command that measures all of them again."""

    group: CaseGroup
    failed: bool
    again: str  #: empty where another launch tells nothing: of what did not fail, or has no reference


def list_numbered_groups(summary: SessionSummary) -> list[NumberedGroup]:
    """List the groups of cases that are not healthy, with the commands that measure them again."""
    numbered = []
    for number, group in enumerate(overview.list_groups(summary), 1):
        failed = any(not result.counts_as_healthy(summary.strict) for result in group.results)
        tells = failed and group.verdict is not Verdict.NO_REFERENCE
        again = overview.format_again(group, number, summary) if tells else ""
        numbered.append(NumberedGroup(group, failed, again))
    return numbered


def describe_sight(results: Sequence[CaseResult]) -> str:
    """Describe what would be called tonight; empty if nothing is known of it."""
    known = overview.select_with_power(results)
    if not known:
        return ""
    return f"tonight would see, of {overview.count_known(known, results)}: {overview.describe_tonight(known)}"


def propose_next(summary: SessionSummary, rounds: Sequence[LaterRound] = ()) -> list[Proposal]:
    """Propose what to do next, the most urgent first.

    :param rounds: that measured its suspects again
    """
    return list(_propose(summary, rounds))[:MOST_PROPOSED]


def select_undecided(summary: SessionSummary, rounds: Iterable[LaterRound] = ()) -> list[CaseResult]:
    """Select the suspects on which no later round decided."""
    said = {result.case: result.verdict for each in rounds for result in each.results}
    suspects = [result for result in summary.results if result.verdict is Verdict.SUSPECT]
    return [result for result in suspects if said.get(result.case) not in DECIDED]


def _propose(summary: SessionSummary, rounds: Sequence[LaterRound]) -> Iterator[Proposal]:
    broken = [
        result
        for result in summary.failed
        if result.verdict not in UNHELD and not is_healthy(result.verdict, strict=True)
    ]
    single = [group.again for group in list_numbered_groups(summary) if group.again]
    again = single[0] if len(single) == 1 else f"./plumbline run --failed {summary.session}"
    if broken:
        few = "failed case" if len(broken) == 1 else formats.plural(len(broken), "failed case")
        yield Proposal(f"Measure the {few} again", again, estimate_cost(summary, broken))
    if fell := [result for result in list_last_results(rounds) if result.verdict.tone == "bad"]:
        what = f"{formats.plural(len(fell), 'suspect')} failed when measured again: measure again"
        command = f"./plumbline run --failed {rounds[-1].session}"
        yield Proposal(what, command, estimate_cost(summary, fell))
    if why := describe_uncalibrated(summary.results):
        yield Proposal(f"Calibrate: {why}", format_command("calibrate", summary), "")
    elif summary.mode != "calibrate" and (unjudged := overview.select_unjudged(summary.results)):
        why = (
            f"the ranks of {formats.plural(len(unjudged), 'case')} lay on cores of which no reference is known"
        )
        yield Proposal(f"Calibrate: {why}", format_command("calibrate", summary), "")
    astray = [
        result for result in summary.results if result.verdict is Verdict.NOT_COMPARABLE and not result.outdated
    ]
    if astray:
        what = f"{formats.plural(len(astray), 'case')} cannot be compared with the reference"
        why = f"{what}: do what the reason says, then measure again"
        yield Proposal(why, again, estimate_cost(summary, astray))
    fresh = summary.mode.endswith(FRESH)  # the session that they were taken for proposes
    if suspects := () if fresh else select_undecided(summary, rounds):
        what = formats.plural(len(suspects), "suspect case")
        why, verb = f"Nights decide on {what}", "nightly"
        if summary.mode in JUDGING:
            why, verb = f"{why}; or measure again {APART_MINUTES} minutes after this one", "confirm"
        yield Proposal(why, format_command(verb, summary), estimate_cost(summary, suspects))
    by_hand = select_words(summary.command, dict.fromkeys(OF_A_TRIAL, True))
    if not by_hand and (gain := describe_gain(summary.results)):
        part = select_words(summary.command, {"--failed": False})
        cost = "" if part else f"{_measure_duration(summary)} a night"
        yield Proposal(gain, format_command("nightly", summary), cost)


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
    """Format a command for the site on which a session measured, and for what it measured there."""
    flags = {**SELECTING, **OF_LAUNCHES} if verb == "nightly" else SELECTING
    chosen = select_words(summary.command, flags)
    return shlex.join(["./plumbline", verb, *list_site_words(summary.site), *chosen])


def describe_gain(results: Sequence[CaseResult]) -> str:
    """Describe what further good nights will see that this one does not; empty if they see no more."""
    known = overview.select_with_power(results)
    tonight = [result.detectable for result in known]
    learned = [result.detectable_learned for result in known]
    step = next((value for value in overview.STEPS if _count(learned, value) > _count(tonight, value)), None)
    if step is None:
        few = 2 * _count(learned, overview.STEPS[0]) < len(known)
        return BLIND_MACHINE if few else ""
    name = "2 times slower" if step == 1.0 else f"{step:.0%} slower"
    now, then = _count(tonight, step), _count(learned, step)
    of = formats.plural(len(known), "case")
    many = f"{formats.format_whole(then)} of {of}, now in {formats.format_whole(now)}"
    told = f"{name} is called within {LONGEST_RUN} more in {many}"
    return f"Let nights pass: after {MOST_SESSIONS} that go well, {told}"


def estimate_cost(summary: SessionSummary, results: Iterable[CaseResult]) -> str:
    """Estimate how long the jobs of some cases take, by how long they took; empty if none is known."""
    places = {LaunchPlace.of(result.case) for result in results}
    took = [job.seconds for job in list_timed_jobs(summary.launches) if job.place in places]
    return f"about {formats.duration(sum(took))}" if sum(took) else ""


def _count(limits: Iterable[float | None], step: float) -> int:
    return sum(limit is not None and limit <= step for limit in limits)


def _measure_duration(summary: SessionSummary) -> str:
    """Measure how long a night like this one takes, by its phases, once all is built and calibrated."""
    later = (seconds for phase, seconds in summary.phases.items() if phase not in FIRST_PHASES)
    return formats.duration(sum(later))
