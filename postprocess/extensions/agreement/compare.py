"""Compare what mpicost, OSU and IMB measure in the same case. Values in, findings out.

Programs are compared by the ratio of their values in the same round, a launch of each, one right after the
other: what slows the machine down for a while slows all three. Above 1 is slower, whatever the unit.
"""

import math
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum

import scipy

from postprocess.base.formats import compute_slowdown
from postprocess.base.grouping import group_pairs
from postprocess.model.routines.mpicost import ROUTINES

CONFIDENCE = 0.95  #: of an interval
FEWEST_LAUNCHES = 3  #: for an interval


def compute_ratio_interval(logs: Sequence[float], least: float = 0.0) -> tuple[float, float] | None:
    """Compute the confidence interval of the geometric mean of ratios, from their logarithms; None for too few.

    Student's interval of the mean, the paired t procedure on ln(a/b): mean -+ t(1 - alpha/2; n - 1)
    s / sqrt(n) (Jain, The Art of Computer Systems Performance Analysis, 13.4.1). ``least``: a smaller
    standard deviation s is not used.
    """
    if len(logs) < FEWEST_LAUNCHES:
        return None
    mean, error = statistics.fmean(logs), _error(logs, least)
    half = float(scipy.stats.t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * error
    return math.exp(mean - half), math.exp(mean + half)


def compute_outside_probability(logs: Sequence[float], low: float, high: float, least: float = 0.0) -> float:
    """Compute how probable a mean so far outside ``low`` to ``high`` is if the true ratio is inside; at most 1.

    Two one-sided paired t tests against the nearer end, doubled. 1 for too few launches. ``least`` as in
    :func:`compute_ratio_interval`.
    """
    if len(logs) < FEWEST_LAUNCHES:
        return 1.0
    mean, error = statistics.fmean(logs), _error(logs, least)
    beyond = max(math.log(low) - mean, mean - math.log(high))
    if error == 0 or beyond <= 0:
        return 0.0 if beyond > 0 else 1.0
    return min(1.0, 2 * float(scipy.stats.t.sf(beyond / error, len(logs) - 1)))


def reject_by_holm(probabilities: Sequence[float], level: float) -> list[bool]:
    """Return which hypotheses are rejected if any false rejection may have the probability ``level``.

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


def _error(logs: Sequence[float], least: float) -> float:
    """Return the standard error of the mean."""
    return max(statistics.stdev(logs), least) / math.sqrt(len(logs))


SMALL = 8192  #: bytes up to which a message costs latency; OSU has other counts of calls above, too
ANY = 2**62  #: bytes; no message is as large
MPICOST_AND_OTHER = (("mpicost", "osu"), ("mpicost", "imb"))
OSU_AND_IMB = (("osu", "imb"),)
IN_PAIRS = tuple(routine.name for routine in ROUTINES if routine.in_pairs)
ROOTED = tuple(routine.name for routine in ROUTINES if routine.rooted)


@dataclass(frozen=True)
class ExpectedRange:
    """The range of a ratio, and what it holds for; outside of it one of the two programs is wrong."""

    pairs: tuple[tuple[str, str], ...]
    routines: tuple[str, ...] | None  #: None for any
    most_bytes: int
    low: float
    high: float
    reason: str

    def applies_to(self, over: str, under: str, routine: str, size: int) -> bool:
        known = self.routines is None or routine in self.routines
        return (over, under) in self.pairs and known and size <= self.most_bytes


RANGES = (
    ExpectedRange(
        MPICOST_AND_OTHER,
        IN_PAIRS,
        SMALL,
        0.6,
        2.0,
        "OSU and IMB loop; mpicost has a barrier before each round trip, which one rank leaves first, and "
        "takes the longer of both ranks' times (Open MPI, 1 KiB: 1.2)",
    ),
    ExpectedRange(
        MPICOST_AND_OTHER,
        ROOTED,
        SMALL,
        0.5,
        2.0,
        "the root and the others do not wait for each other; the result depends on who leaves the barrier "
        "first (MPICH, bcast of 8 B: 0.66)",
    ),
    ExpectedRange(
        MPICOST_AND_OTHER,
        None,
        SMALL,
        0.6,
        1.67,
        "same calls, one barrier between; barrier exit and clock readings matter below 1 us (Open MPI, "
        "barrier: 1.3; MPICH, allreduce of 1 KiB: 0.74)",
    ),
    ExpectedRange(
        MPICOST_AND_OTHER,
        None,
        ANY,
        0.75,
        1.33,
        "same calls, one barrier between; buffer placement and the data type of reductions (double, "
        "float) remain (measured: 0.93 to 1.03 in eight of ten cases)",
    ),
    ExpectedRange(
        OSU_AND_IMB,
        None,
        SMALL,
        0.6,
        1.67,
        "same statistic; IMB times the barrier in a loop, OSU every call (Intel MPI: 1.3), and slow first "
        "calls can leave a trace",
    ),
    ExpectedRange(
        OSU_AND_IMB,
        None,
        ANY,
        0.75,
        1.33,
        "same calls, same statistic (measured: 0.94 to 1.01 in eight of ten cases)",
    ),
)


def find_expected_range(over: str, under: str, routine: str, size: int) -> ExpectedRange:
    """Find the range of one program's value over another's: the first that fits.

    :raises ValueError: for two programs that are not compared.
    """
    for expected in RANGES:
        if expected.applies_to(over, under, routine, size):
            return expected
    raise ValueError(f"no range is stated for {over} over {under}")


PROGRAMS = ("mpicost", "osu", "imb")
PAIRS = (("mpicost", "osu"), ("mpicost", "imb"), ("osu", "imb"))
#: Probability that a session names a correct program, if all its ratios lie at the edge of their range.
FALSE_ALARM = 0.05


@dataclass(frozen=True, order=True)
class Topic:
    """What the programs are compared in: one operation at one size, with one MPI and layout."""

    place: str  #: ``system:partition``
    environment: str
    layout: str  #: processes and processes per node, as in ``4x2``
    routine: str
    bytes: int


@dataclass(frozen=True)
class ProgramSample:
    """The result of one launch of a program: a positive value in ``unit``.

    ``alike`` is what it says by the definition of the other programs, in the same unit and from the same
    trials; None where that is what it says anyway.
    """

    topic: Topic
    program: str
    launch: int
    value: float
    unit: str
    alike: float | None = None

    def __post_init__(self) -> None:
        if not all(math.isfinite(value) and value > 0 for value in (self.value, self.compared)):
            raise ValueError(f"{self.topic} by {self.program}: {self.value}, {self.alike}")

    @property
    def compared(self) -> float:
        """The value that all programs define alike, in its own unit."""
        return self.value if self.alike is None else self.alike


#: Share of the ratios that may lie outside their range without significance, because of noise.
MOST_DOUBTFUL = 0.05


class RatioStatus(Enum):
    """The status of a ratio against its expected range."""

    AGREE = "agree"  #: the whole interval is inside
    OPEN = "open"  #: neither shown to be inside nor to be outside: more launches are needed
    DISAGREE = "disagree"  #: significantly outside, corrected for the number of ratios
    UNJUDGED = "unjudged"  #: too few launches for an interval


@dataclass(frozen=True)
class ProgramComparison:
    """One program over another in one case, by values that both define alike."""

    topic: Topic
    over: str
    under: str
    launches: int  #: rounds in which both have a value
    ratio: float  #: geometric mean over the rounds
    interval: tuple[float, float] | None  #: of the ratio; None for too few launches
    definition: float  #: the first program's own value over the one that is compared, likewise
    expected: ExpectedRange
    outside: float = 1.0  #: probability of such values if the ratio is inside its range
    disagrees: bool = False  #: significant among all ratios of the session

    @property
    def status(self) -> RatioStatus:
        """Whether the programs agree."""
        if self.interval is None:
            return RatioStatus.UNJUDGED
        if self.disagrees:
            return RatioStatus.DISAGREE
        low, high = self.interval
        inside = self.expected.low <= low and high <= self.expected.high
        return RatioStatus.AGREE if inside else RatioStatus.OPEN

    @property
    def is_inside(self) -> bool:
        """Whether the ratio itself is inside its range, whatever its interval."""
        return self.expected.low <= self.ratio <= self.expected.high

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
class Disagreement:
    """A case in which programs disagree: one of them is wrong."""

    topic: Topic
    comparisons: tuple[ProgramComparison, ...]  #: those outside their range
    #: the program that both others contradict; empty where it cannot be told which is wrong
    alone: str = ""

    @property
    def name(self) -> str:
        """Such as ``imb-alone``, or ``osu-against-imb`` where it cannot be told which is wrong."""
        if self.alone:
            return f"{self.alone}-alone"
        return "-".join(f"{comparison.over}-against-{comparison.under}" for comparison in self.comparisons)


@dataclass(frozen=True)
class AgreementResult:
    """The result of a comparison: ratios, findings and gaps."""

    comparisons: tuple[ProgramComparison, ...]
    findings: tuple[Disagreement, ...]
    gaps: tuple[Gap, ...]

    def count(self, status: RatioStatus) -> int:
        return sum(comparison.status is status for comparison in self.comparisons)

    @property
    def doubtful(self) -> int:
        """Ratios that lie outside their range, and are not shown to."""
        outside = (comparison for comparison in self.comparisons if not comparison.is_inside)
        return sum(comparison.status is RatioStatus.OPEN for comparison in outside)

    @property
    def decided(self) -> bool:
        """Whether every two programs are shown to agree somewhere with each MPI, and few ratios are doubtful.

        Where all ratios are off, and few launches prove none of them, nothing is well.
        """
        groups = {
            (comparison.topic.environment, comparison.over, comparison.under) for comparison in self.comparisons
        }
        shown = {
            (comparison.topic.environment, comparison.over, comparison.under)
            for comparison in self.comparisons
            if comparison.status is RatioStatus.AGREE
        }
        few = self.doubtful <= MOST_DOUBTFUL * len(self.comparisons)
        return bool(groups) and groups == shown and few

    @property
    def good(self) -> bool:
        """No finding, and enough is decided to say that the programs agree."""
        return not self.findings and self.decided


def compare_programs(
    samples: Iterable[ProgramSample], planned: Mapping[Topic, Mapping[str, str]]
) -> AgreementResult:
    """Compare the programs in every case, and name what is missing.

    :param planned: for each topic the programs that were to measure it, with the reason why one has
        nothing to say where that is known beforehand (else empty). A program that is not among them does
        not have the routine, or not at that size.
    :raises ValueError: if two values of one launch are given, units differ, or a sample was not planned.
    """
    values = _arranged(samples, planned)
    ratios: list[_Ratio] = []
    gaps: list[Gap] = []
    for topic, programs in sorted(planned.items()):
        said = values.get(topic, {})
        both = [(over, under) for over, under in PAIRS if over in said and under in said]
        found = [_ratio(topic, over, under, said) for over, under in both]
        ratios += [each for each in found if each.logs]
        gaps += [
            Gap(topic, program, reason) for program in PROGRAMS if (reason := _missing(program, programs, said))
        ]
    usual = _usual_spreads(ratios)
    compared = [_compared(ratio, usual.get(ratio.place, 0.0)) for ratio in ratios]
    rejected = reject_by_holm([comparison.outside for comparison in compared], FALSE_ALARM)
    judged = [replace(each, disagrees=no) for each, no in zip(compared, rejected, strict=True)]
    return AgreementResult(tuple(judged), tuple(find_disagreements(judged)), tuple(gaps))


def find_disagreements(comparisons: Iterable[ProgramComparison]) -> list[Disagreement]:
    """Find the cases in which programs disagree, named by the one that stands alone if one does."""
    return [
        Disagreement(topic, tuple(apart), _alone(apart, here))
        for topic, here in group_pairs((comparison.topic, comparison) for comparison in comparisons).items()
        if (apart := [each for each in here if each.status is RatioStatus.DISAGREE])
    ]


def _alone(apart: Sequence[ProgramComparison], here: Sequence[ProgramComparison]) -> str:
    """Return the program that is on the same side of both others, which do not disagree; empty if none is."""
    if len(here) == len(PAIRS) and len(apart) == 2:
        (alone,) = {apart[0].over, apart[0].under} & {apart[1].over, apart[1].under}
        if (apart[0].slower == alone) == (apart[1].slower == alone):
            return alone
    return ""


_Said = Mapping[str, Mapping[int, ProgramSample]]


def _arranged(
    samples: Iterable[ProgramSample], planned: Mapping[Topic, Mapping[str, str]]
) -> dict[Topic, dict[str, dict[int, ProgramSample]]]:
    values: dict[Topic, dict[str, dict[int, ProgramSample]]] = {}
    for sample in samples:
        if sample.program not in planned.get(sample.topic, {}):
            raise ValueError(f"{sample.topic} by {sample.program} was not planned")
        launches = values.setdefault(sample.topic, {}).setdefault(sample.program, {})
        if sample.launch in launches:
            raise ValueError(f"{sample.topic} by {sample.program}: launch {sample.launch} twice")
        launches[sample.launch] = sample
    return values


@dataclass(frozen=True)
class _Ratio:
    """Two programs in one case: the logarithm of their ratio in each round that both have."""

    topic: Topic
    over: str
    under: str
    logs: tuple[float, ...]
    own: tuple[float, ...]  #: logarithms of the first one's own value over the one that is compared

    @property
    def place(self) -> tuple[str, ...]:
        """Where ratios scatter alike: the same two programs on the same MPI and layout."""
        topic = self.topic
        return topic.place, topic.environment, topic.layout, self.over, self.under


def _ratio(topic: Topic, over: str, under: str, said: _Said) -> _Ratio:
    rounds = sorted(said[over].keys() & said[under].keys())
    pairs = [(said[over][number], said[under][number]) for number in rounds]
    units = {sample.unit for pair in pairs for sample in pair}
    if len(units) > 1:
        raise ValueError(f"{topic}: {over} and {under} count in {' and '.join(sorted(units))}")
    logs = (math.log(compute_slowdown(a.compared, b.compared, a.unit)) for a, b in pairs)
    own = (math.log(compute_slowdown(a.value, a.compared, a.unit)) for a, _ in pairs)
    return _Ratio(topic, over, under, tuple(logs), tuple(own))


def _usual_spreads(ratios: Sequence[_Ratio]) -> dict[tuple[str, ...], float]:
    """Return the median spread between rounds in each place.

    No interval is made of a smaller one: on a restless machine a few values lie near each other by chance.
    """
    found = group_pairs((ratio.place, statistics.stdev(ratio.logs)) for ratio in ratios if len(ratio.logs) > 1)
    return {place: statistics.median(spreads) for place, spreads in found.items()}


def _compared(ratio: _Ratio, usual: float) -> ProgramComparison:
    limits = find_expected_range(ratio.over, ratio.under, ratio.topic.routine, ratio.topic.bytes)
    return ProgramComparison(
        ratio.topic,
        ratio.over,
        ratio.under,
        launches=len(ratio.logs),
        ratio=math.exp(statistics.fmean(ratio.logs)),
        interval=compute_ratio_interval(ratio.logs, usual),
        definition=math.exp(statistics.fmean(ratio.own)),
        expected=limits,
        outside=compute_outside_probability(ratio.logs, limits.low, limits.high, usual),
    )


def _missing(program: str, programs: Mapping[str, str], said: _Said) -> str:
    """Return why a program has no value, or not in every round; empty if it has."""
    if program not in programs:
        return "does not measure it"
    rounds = {number for launches in said.values() for number in launches}
    have = len(said.get(program, {}))
    if programs[program]:
        return programs[program]
    if not have:
        return "no value"
    return f"a value in {have} of {len(rounds)} launches" if have < len(rounds) else ""
