"""The verdict: one word per case from a closed list, and its meaning for the exit status."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any

from postprocess.base import formats
from postprocess.base.records import Amount
from postprocess.model.case import Case
from postprocess.model.measurement import TrialSummary


class Standing(Enum):
    """The meaning of a verdict for the session."""

    GOOD = "good"
    OPEN = "open"  #: nothing failed and nothing is proven; a strict session fails
    FAILED = "failed"


class Seen(Enum):
    """How the value compared with its reference before anything was measured again."""

    INSIDE = "inside"
    SLOW = "slow"
    FAST = "fast"
    UNHELD = "unheld"  #: there is a value, but no reference to compare it with
    NOTHING = "nothing"  #: there is no valid value


class Verdict(str, Enum):
    """The verdict on a case. The list is closed: a new word changes the package's contract.

    A member has its word, its gravity (reports begin with the greatest), its standing, its sign in reports and
    its letter in a history. Whatever depends on the verdict is computed from these.
    """

    standing: Standing
    seen: Seen
    gravity: int
    sign: str
    letter: str

    def __new__(
        cls,
        word: str,
        gravity: int = 0,
        standing: Standing = Standing.FAILED,
        seen: Seen = Seen.NOTHING,
        sign: str = "✗",
        letter: str = "!",
    ) -> Verdict:
        """Create a member from its word and its properties."""
        verdict = str.__new__(cls, word)
        verdict._value_ = word
        verdict.gravity, verdict.standing, verdict.seen = gravity, standing, seen
        verdict.sign, verdict.letter = sign, letter
        return verdict

    PASS = "pass", 0, Standing.GOOD, Seen.INSIDE, "✓", "."  #: inside its band
    #: slower than its band allows
    REGRESSED = "regressed", 80, Standing.FAILED, Seen.SLOW, "✗", "R"
    #: slow again, but within what other hours may bring: the next night decides
    SUSPECT = "suspect", 50, Standing.OPEN, Seen.SLOW, "!", "s"
    CLEARED = "cleared", 10, Standing.GOOD, Seen.SLOW, "✓", "c"  #: looked slow, but did not repeat
    #: suspiciously faster than its band allows
    FAST = "fast", 20, Standing.GOOD, Seen.FAST, "»", "f"
    INCORRECT = "incorrect", 120  #: wrong data, wrong MPI, or a record that contradicts itself
    INCOMPLETE = "incomplete", 90  #: planned, but no whole result arrived
    CRASHED = "crashed", 110  #: the program died or returned non-zero
    TIMEOUT = "timeout", 100  #: the launch ran into its time limit
    #: measured, but without a reference
    NO_REFERENCE = "no-reference", 60, Standing.FAILED, Seen.UNHELD, "?", "-"
    #: no gross change, but its reference has too few sessions or launches
    PROVISIONAL = "provisional", 40, Standing.OPEN, Seen.INSIDE, "~", "p"
    #: the reference is for another method or program
    NOT_COMPARABLE = "not-comparable", 70, Standing.FAILED, Seen.UNHELD, "≠", "n"
    #: deliberately not run, with its reason
    SKIPPED = "skipped", 30, Standing.OPEN, Seen.NOTHING, "–", " "

    def __str__(self) -> str:
        return self.value

    @property
    def tone(self) -> str:
        """``good``, ``bad``, or ``fair`` if nothing failed but people should look."""
        if self.standing is Standing.FAILED:
            return "bad"
        return "fair" if self.standing is Standing.OPEN or self.seen is Seen.FAST else "good"


def select_verdicts(*said: Standing | Seen) -> frozenset[Verdict]:
    return frozenset(verdict for verdict in Verdict if verdict.standing in said or verdict.seen in said)


FAILED = select_verdicts(Standing.FAILED)
HEALTHY = frozenset(Verdict) - FAILED
STRICT_HEALTHY = select_verdicts(Standing.GOOD)
#: Verdicts from a comparison with the reference: other values say nothing about the machine's speed.
JUDGED = select_verdicts(Seen.INSIDE, Seen.SLOW, Seen.FAST)
INSIDE = select_verdicts(Seen.INSIDE)
LOOKED_SLOW = select_verdicts(Seen.SLOW)
WITHOUT_VALUE = select_verdicts(Seen.NOTHING)
#: Healthy because nothing was asserted
UNASSERTED = select_verdicts(Standing.OPEN) - LOOKED_SLOW
#: Healthy, but outside the band
WORTH_A_LOOK = frozenset(verdict for verdict in JUDGED - INSIDE if verdict.tone == "fair")
#: Verdicts of a failed launch, the worst first: the worst one counts for a case.
FAILED_LAUNCH = tuple(sorted(WITHOUT_VALUE & FAILED, key=lambda verdict: -verdict.gravity))


@dataclass(frozen=True)
class CaseResult:
    """A case with its verdict and the facts behind it. Values are in ``unit``."""

    case: Case
    verdict: Verdict
    reason: str = ""  #: one line for people; empty for ``pass``
    value: Amount | None = None  #: the judged value: for mpicost the median of its launches' steady times
    unit: formats.Unit = formats.SECONDS
    reference: Amount | None = None
    band: tuple[Amount, Amount] | None = None  #: (lower, upper)
    launches: int = 0  #: launches behind ``value``
    reference_launches: int = 0  #: launches behind ``reference``
    summary: TrialSummary | None = None
    rerun: str = ""  #: command that measures only this case again
    #: All columns of a row of a program without trials, by header words.
    figures: Mapping[str, float] = field(default_factory=dict, hash=False)
    #: Share of false alarms if all cases at least as unlikely as this one were alarms (Benjamini-Hochberg).
    q: Amount | None = None
    #: Smallest slowdown, as a fraction, that one night detects with 90% probability.
    detectable: Amount | None = None
    detectable_soon: Amount | None = None  #: the same for three nights
    #: the same for ten nights once the reference has learned from all its sessions
    detectable_learned: Amount | None = None
    #: standard deviation of ln value about its reference: between launches, sessions and days, and of the
    #: center
    spread: Amount | None = None
    degrees: Amount | None = None  #: degrees of freedom of the spread
    #: the papers' filtered mean, as a median over the launches; None without trials
    headline: Amount | None = None
    headline_reference: Amount | None = None
    headline_limit: Amount | None = None  #: beyond which it is slow
    by_headline: bool = False  #: whether the headline is slow but the value is not, because few trials are slow
    expected: str = ""  #: why this failure is expected; empty if it is not
    provisional: bool = False  #: whether the reference has too few sessions or launches
    #: For a case that is not comparable: why its reference must be calibrated anew, such as ``is of another
    #: compiler``. Empty if the launch itself can be mended.
    outdated: str = ""
    #: For ranks on other cores: the core-to-core latency relative to the reference
    latency_ratio: Amount | None = None
    #: common cause of this and many other slow cases, in one line; empty for a case by itself
    cause: str = ""
    #: Hosts on which a cleared case was slow while it was fine on others. Only in the log of alarms.
    slow_on: tuple[str, ...] = ()
    #: Whether it cannot be judged because its ranks were on cores that no reference covers, without a gross
    #: change. Only in the session itself.
    elsewhere: bool = False
    #: Core-to-core time of the reference's launches, in seconds. Only in the session itself.
    core_latency: float | None = None

    @property
    def beyond(self) -> bool:
        """Whether the value is outside its band, whatever follows from that."""
        if self.value is None or self.band is None:
            return False
        return not self.band[0] <= self.value <= self.band[1]

    @property
    def too_slow(self) -> bool:
        """Whether the value is beyond the slow limit.

        With a reference of few launches this alone fails nothing.
        """
        return self.beyond and (self.slowdown or 0.0) > 1

    @property
    def slow_headline(self) -> bool:
        """Whether the headline is beyond its own limit."""
        if not self.headline or not self.headline_limit:
            return False
        return formats.compute_slowdown(self.headline, self.headline_limit, self.unit) > 1

    @property
    def published(self) -> float | None:
        """What the papers publish: the headline, or the value of a program without trials."""
        return self.value if self.headline is None else self.headline

    @property
    def slowdown(self) -> float | None:
        """How many times as slow as its reference it is: above 1 is worse in every unit. None if unknown."""
        if not self.value or not self.reference:
            return None
        return formats.compute_slowdown(self.value, self.reference, self.unit)

    def counts_as_healthy(self, strict: bool) -> bool:
        """Return whether the result counts towards exit status 0.

        An expected failure does, unless ``strict``; a provisional result does not if ``strict``.
        """
        if strict:
            return is_healthy(self.verdict, strict) and not self.provisional
        return is_healthy(self.verdict, strict) or bool(self.expected)

    def entry(self) -> dict[str, Any]:
        """Return the result as an object of the summary file: the key, its parts, and the result."""
        case = asdict(self.case) | {"variant": self.case.variant, "layout": self.case.layout}
        summary = asdict(self.summary) if self.summary else None
        return {
            "key": self.case.key,
            **case,
            "value": self.value,
            "unit": self.unit,
            "reference": self.reference,
            "band": list(self.band) if self.band else None,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "launches": self.launches,
            "reference_launches": self.reference_launches,
            "statistics": summary,
            "figures": dict(self.figures),
            "rerun": self.rerun,
            "q": self.q,
            "detectable": self.detectable,
            "detectable_soon": self.detectable_soon,
            "detectable_learned": self.detectable_learned,
            "headline": self.headline,
            "headline_reference": self.headline_reference,
            "headline_limit": self.headline_limit,
            "by_headline": self.by_headline,
            "spread": self.spread,
            "degrees": self.degrees,
            "expected": self.expected,
            "provisional": self.provisional,
            "outdated": self.outdated,
            "latency_ratio": self.latency_ratio,
            "cause": self.cause,
        }


def describe_unjudged(error: Exception) -> str:
    """Describe why a measured case is not judged, for a fault that is not its launch's."""
    return f"cannot be judged: {type(error).__name__}: {error}; its trials are kept"


def count_verdicts(results: Iterable[CaseResult]) -> dict[str, int]:
    """Count the cases per verdict, in the order of the closed list, without zeros."""
    counts = Counter(result.verdict for result in results)
    return {str(verdict): counts[verdict] for verdict in Verdict if counts[verdict]}


def is_healthy(verdict: Verdict, strict: bool) -> bool:
    """Return whether a case with this verdict may count towards exit status 0."""
    return verdict in (STRICT_HEALTHY if strict else HEALTHY)


def compute_exit_status(results: Iterable[CaseResult], strict: bool) -> int:
    """Return 0 if at least one case was measured and every one is healthy, else 1."""
    results = list(results)
    done = HEALTHY - WITHOUT_VALUE  # apart from failures that are expected
    ran = any(result.value is not None or result.verdict in done for result in results)
    return 0 if ran and all(result.counts_as_healthy(strict) for result in results) else 1


class RecordError(Exception):
    """A launch that yields no result: its verdict, and one line with file, line and key."""

    def __init__(self, verdict: Verdict, message: str) -> None:
        super().__init__(verdict, message)
        self.verdict = verdict
        self.message = message

    def __str__(self) -> str:
        return self.message


def find_varying_fields(results: Sequence[CaseResult], names: Sequence[str]) -> tuple[str, ...]:
    """Return those of ``names`` in which the cases differ."""
    return tuple(name for name in names if len({getattr(r.case, name) for r in results}) > 1)
