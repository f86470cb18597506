"""What mpicost, OSU and IMB say of the same case, and whether they agree. Values in, findings out.

Programs are compared by the ratio of their values in the same round, a launch of each, one right after the
other: what slows the machine down for a while slows all three. Above 1 is slower, whatever the unit.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

from scipy import stats

from postprocess.opinions_expected import Expected, expected
from postprocess.units import slowdown

PROGRAMS = ("mpicost", "osu", "imb")
PAIRS = (("mpicost", "osu"), ("mpicost", "imb"), ("osu", "imb"))
CONFIDENCE = 0.95  #: of an interval
#: Probability that a session names a sound program, all its ratios together and all at the edge of their range.
FALSE_ALARM = 0.05
FEWEST_LAUNCHES = 3  #: of which there is an interval
MOST_EXPLAINED = 2.0  #: a factor; what definitions make of a value beyond it is no explanation


@dataclass(frozen=True, order=True)
class Topic:
    """What the programs are asked: one operation at one size, on one MPI and layout."""

    place: str  #: ``system:partition``
    environment: str
    layout: str  #: processes and processes per node, as in ``4x2``
    routine: str
    bytes: int

    @property
    def processes(self) -> int:
        """Processes of the layout."""
        return int(self.layout.partition("x")[0])


@dataclass(frozen=True)
class Sample:
    """What one launch of a program says: a positive value in ``unit``.

    ``others`` bounds what the program would have said by the definition of the other programs, in the
    same unit and from the same trials; None where it says that anyway.
    """

    topic: Topic
    program: str
    launch: int
    value: float
    unit: str
    others: tuple[float, float] | None = None

    def __post_init__(self) -> None:
        if not all(math.isfinite(each) and each > 0 for each in (self.value, *(self.others or ()))):
            raise ValueError(f"{self.topic} by {self.program}: {self.value}, {self.others}")


class Standing(Enum):
    """How a ratio stands to the range that is expected of it."""

    AGREE = "agree"  #: the whole interval is inside
    OPEN = "open"  #: neither shown to be inside nor to be outside: more launches are needed
    DISAGREE = "disagree"  #: outside, beyond what chance does among so many ratios
    UNJUDGED = "unjudged"  #: too few launches for an interval


@dataclass(frozen=True)
class Comparison:
    """One program over another in one case."""

    topic: Topic
    over: str
    under: str
    launches: int  #: rounds in which both have a value
    ratio: float  #: geometric mean over the rounds
    interval: tuple[float, float] | None  #: of the ratio; None for too few launches
    definition: tuple[float, float]  #: factors between which the definitions alone put it
    expected: Expected
    outside: float = 1.0  #: probability of such values if the ratio is inside its range
    disagrees: bool = False  #: less probable than chance among all ratios of the session allows

    @property
    def limits(self) -> tuple[float, float]:
        """The expected range, widened by what the definitions explain in these very trials."""
        low, high = self.definition
        return self.expected.low * min(low, 1.0), self.expected.high * max(high, 1.0)

    @property
    def standing(self) -> Standing:
        """Whether the programs agree."""
        if self.interval is None:
            return Standing.UNJUDGED
        if self.disagrees:
            return Standing.DISAGREE
        (low, high), (least, most) = self.interval, self.limits
        return Standing.AGREE if least <= low and high <= most else Standing.OPEN

    @property
    def slower(self) -> str:
        """The program with the slower value."""
        return self.over if self.ratio > 1 else self.under


@dataclass(frozen=True, order=True)
class Gap:
    """A program without a value where another one has, or should have, one."""

    topic: Topic
    program: str
    reason: str


@dataclass(frozen=True)
class Finding:
    """A case in which programs disagree: one of them is wrong."""

    name: str  #: such as ``imb-alone``, or ``osu-against-imb`` where it cannot be told which
    topic: Topic
    comparisons: tuple[Comparison, ...]  #: those outside their range


@dataclass(frozen=True)
class Opinions:
    """All that a session says of the agreement of its programs."""

    comparisons: tuple[Comparison, ...]
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]

    def count(self, standing: Standing) -> int:
        """Ratios that stand so."""
        return sum(each.standing is standing for each in self.comparisons)

    @property
    def good(self) -> bool:
        """No finding, and something was judged at all."""
        judged = len(self.comparisons) - self.count(Standing.UNJUDGED)
        return not self.findings and judged > 0


def interval(logs: Sequence[float]) -> tuple[float, float] | None:
    """Confidence interval of the geometric mean whose logarithms are ``logs``; None for too few.

    Student's interval of the mean of the logarithms, the paired t procedure on ln(a/b): mean -+
    t(1 - alpha/2; n - 1) s / sqrt(n) (Jain, The Art of Computer Systems Performance Analysis, 13.4.1).
    """
    if len(logs) < FEWEST_LAUNCHES:
        return None
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    half = float(stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * error
    return math.exp(mean - half), math.exp(mean + half)


def outside(logs: Sequence[float], low: float, high: float) -> float:
    """Probability of a mean so far outside of ``low`` to ``high`` if the true ratio is inside; at most 1.

    Two one-sided paired t tests against the nearer end, doubled. 1 for too few launches.
    """
    if len(logs) < FEWEST_LAUNCHES:
        return 1.0
    mean, error = statistics.fmean(logs), statistics.stdev(logs) / math.sqrt(len(logs))
    beyond = max(math.log(low) - mean, mean - math.log(high))
    if error == 0 or beyond <= 0:
        return 0.0 if beyond > 0 else 1.0
    return min(1.0, 2 * float(stats.t.sf(beyond / error, len(logs) - 1)))


def holm(probabilities: Sequence[float], level: float) -> list[bool]:
    """Which hypotheses are rejected so that any false rejection has at most the probability ``level``.

    Step-down procedure of Holm, Scandinavian Journal of Statistics 6 (1979) 65-70: of m probabilities in
    rising order the k-th, counted from 0, is rejected if it and all before it are at most level / (m - k).
    """
    order = sorted(range(len(probabilities)), key=lambda number: probabilities[number])
    rejected = [False] * len(probabilities)
    for k, number in enumerate(order):
        if probabilities[number] > level / (len(order) - k):
            break
        rejected[number] = True
    return rejected


def form(samples: Iterable[Sample], planned: Mapping[Topic, Mapping[str, str]]) -> Opinions:
    """Compare the programs in every case, and name what is missing.

    :param planned: for each topic the programs that were to measure it, with the reason why one has
        nothing to say where that is known beforehand (else empty). A program that is not among them does
        not have the routine, or not at that size.
    :raises ValueError: if two values of one launch are given, units differ, or a sample was not planned.
    """
    values = _arranged(samples, planned)
    compared: list[Comparison] = []
    gaps: list[Gap] = []
    for topic, programs in sorted(planned.items()):
        said = values.get(topic, {})
        both = [(over, under) for over, under in PAIRS if over in said and under in said]
        ratios = [_compare(topic, over, under, said) for over, under in both]
        compared += [each for each in ratios if each is not None]
        gaps += [
            Gap(topic, program, reason)
            for program in PROGRAMS
            if (reason := _missing(program, programs, said))
        ]
    rejected = holm([each.outside for each in compared], FALSE_ALARM)
    judged = [replace(each, disagrees=no) for each, no in zip(compared, rejected, strict=True)]
    return Opinions(tuple(judged), tuple(find(judged)), tuple(gaps))


def find(comparisons: Iterable[Comparison]) -> list[Finding]:
    """The cases in which programs disagree, named by the one that stands alone if one does."""
    topics: dict[Topic, list[Comparison]] = {}
    for each in comparisons:
        topics.setdefault(each.topic, []).append(each)
    return [
        Finding(_name(apart, here), topic, tuple(apart))
        for topic, here in topics.items()
        if (apart := [each for each in here if each.standing is Standing.DISAGREE])
    ]


def _name(apart: Sequence[Comparison], here: Sequence[Comparison]) -> str:
    """A program stands alone if it is on the same side of both others, which do not disagree."""
    if len(here) == len(PAIRS) and len(apart) == 2:
        (alone,) = {apart[0].over, apart[0].under} & {apart[1].over, apart[1].under}
        if (apart[0].slower == alone) == (apart[1].slower == alone):
            return f"{alone}-alone"
    return "-".join(f"{each.over}-against-{each.under}" for each in apart)


_Said = Mapping[str, Mapping[int, Sample]]


def _arranged(
    samples: Iterable[Sample], planned: Mapping[Topic, Mapping[str, str]]
) -> dict[Topic, dict[str, dict[int, Sample]]]:
    values: dict[Topic, dict[str, dict[int, Sample]]] = {}
    for each in samples:
        if each.program not in planned.get(each.topic, {}):
            raise ValueError(f"{each.topic} by {each.program} was not planned")
        launches = values.setdefault(each.topic, {}).setdefault(each.program, {})
        if each.launch in launches:
            raise ValueError(f"{each.topic} by {each.program}: launch {each.launch} twice")
        launches[each.launch] = each
    return values


def _compare(topic: Topic, over: str, under: str, said: _Said) -> Comparison | None:
    """None if there is no round in which both have a value."""
    rounds = sorted(said[over].keys() & said[under].keys())
    pairs = [(said[over][number], said[under][number]) for number in rounds]
    if not pairs:
        return None
    if units := {each.unit for pair in pairs for each in pair} - {pairs[0][0].unit}:
        raise ValueError(f"{topic}: {over} and {under} count in {pairs[0][0].unit} and {units}")
    logs = [math.log(slowdown(a.value, b.value, a.unit)) for a, b in pairs]
    found = Comparison(
        topic,
        over,
        under,
        launches=len(logs),
        ratio=math.exp(statistics.fmean(logs)),
        interval=interval(logs),
        definition=_definition(pairs),
        expected=expected(over, under, topic.routine, topic.bytes),
    )
    return replace(found, outside=outside(logs, *found.limits))


def _definition(pairs: Sequence[tuple[Sample, Sample]]) -> tuple[float, float]:
    """By what factors the definition of the first program may move the ratio, in these trials."""
    spans = [
        sorted(math.log(slowdown(a.value, other, a.unit)) for other in a.others or (a.value,))
        for a, _ in pairs
    ]
    most = math.log(MOST_EXPLAINED)
    low = statistics.fmean(span[0] for span in spans)
    high = statistics.fmean(span[-1] for span in spans)
    return math.exp(max(low, -most)), math.exp(min(high, most))


def _missing(program: str, programs: Mapping[str, str], said: _Said) -> str:
    """Why a program has no value, or not in every round; empty if it has."""
    if program not in programs:
        return "does not measure it"
    rounds = {number for launches in said.values() for number in launches}
    have = len(said.get(program, {}))
    if programs[program]:
        return programs[program]
    if not have:
        return "no value"
    return f"a value in {have} of {len(rounds)} launches" if have < len(rounds) else ""
