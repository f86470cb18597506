"""What comparisons of two MPIs claim wrongly and overlook, by simulation, beside the ways of the field.

Usage: ``python -m tests.statistical.simulated_upgrades [COMPARISONS]``.

1,000 cases whose launches scatter by 2% or 5% (median; 0.5 on the logarithm of the spread), and a machine whose
speed wanders by 1% from launch to launch, for all cases alike. The package's own functions judge; the ways of
the field see the very same launches. A second table has comparisons of few cases, whose launches remember the
one before.
"""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from postprocess.features.compare.data import SIDES
from postprocess.features.compare.pairs import draw_block
from postprocess.stats.paired_verdicts import NOT_WORSE, USUAL, PairedCase, PairedVerdict, judge_pairs
from tests.statistical.noise import NOISES

CASES, SCATTER, WANDER, MARGIN = 1_000, 0.5, 0.01, math.log(1.05)
PAIRS = USUAL[-1]
SPREADS, CHANGES = (0.02, 0.05), (0.0, 0.03, 0.05, 0.10, 0.20)
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Claims:
    """Shares of the cases that a way calls slower, and that it proves not worse than the margin."""

    slower: float
    fine: float | None = None  #: None where it proves no such thing


def simulate_pairs(
    random: np.random.Generator,
    spread: float,
    change: float | Numbers,
    noise: str = "normal",
    cases: int = CASES,
    memory: float = 0.0,
) -> tuple[Numbers, Numbers]:
    """Simulate ln times of the old and new side, (cases, pairs) each, taken in turn as ABBA or BAAB.

    :param change: of all cases, or of each
    :param memory: correlation of a launch with the one before (first-order autoregressive)
    """
    own = spread * np.exp(random.normal(0, SCATTER, cases))[:, None]
    times = NOISES[noise](random, (cases, 2 * PAIRS))
    for launch in range(1, 2 * PAIRS) if memory else ():
        fresh = math.sqrt(1 - memory**2) * times[:, launch]
        times[:, launch] = memory * times[:, launch - 1] + fresh
    times = own * times + np.cumsum(random.normal(0, WANDER, 2 * PAIRS))
    blocks, seed = times.reshape(cases, PAIRS // 2, 4), int(random.integers(2**32))
    kinds = [draw_block(seed, number + 1) for number in range(PAIRS // 2)]
    old, new = (
        np.stack([blocks[:, n, [i for i in range(4) if kind[i] == side]] for n, kind in enumerate(kinds)], 1)
        for side in SIDES
    )
    shift = np.log1p(np.broadcast_to(change, cases))[:, None]
    return old.reshape(cases, PAIRS), new.reshape(cases, PAIRS) + shift


def judge_plumbline(old: Numbers, new: Numbers) -> Claims:
    """Judge by the package's rules."""
    found = judge_pairs([PairedCase(tuple(row), MARGIN) for row in new - old], USUAL)
    verdicts = [result.verdict for result in found]
    slower = np.mean([verdict == PairedVerdict.SLOWER for verdict in verdicts])
    return Claims(float(slower), float(np.mean([verdict in NOT_WORSE for verdict in verdicts])))


def judge_unpaired(old: Numbers, new: Numbers) -> Claims:
    """Judge as benchstat does: Mann and Whitney's test of unpaired values at 5%, each case by itself."""
    p = stats.mannwhitneyu(new, old, axis=1).pvalue
    return Claims(float(np.mean((p < 0.05) & (np.median(new, 1) > np.median(old, 1)))))


def judge_flat(old: Numbers, new: Numbers) -> Claims:
    """Call slower what is 5% slower by the medians, and fine what is not."""
    slower = float(np.mean(np.median(new, 1) - np.median(old, 1) > MARGIN))
    return Claims(slower, 1 - slower)


def judge_until_significant(old: Numbers, new: Numbers) -> Claims:
    """Judge as perfgate retries: a paired test after each pair from the third, until t is beyond 2."""
    d = new - old
    claimed, open_ = np.zeros(CASES, bool), np.ones(CASES, bool)
    for pairs in range(3, PAIRS + 1):
        some = d[:, :pairs]
        t = some.mean(1) / (some.std(1, ddof=1) / math.sqrt(pairs))
        claimed |= open_ & (t > 2)
        open_ &= np.abs(t) <= 2
    return Claims(float(claimed.mean()))


WAYS: dict[str, Callable[[Numbers, Numbers], Claims]] = {
    "plumbline": judge_plumbline,
    "unpaired U test": judge_unpaired,
    "flat 5%": judge_flat,
    "until significant": judge_until_significant,
}


def average_claims(comparisons: int, spread: float, change: float, noise: str = "normal") -> dict[str, Claims]:
    """Average the claims of each way over comparisons."""
    random = np.random.default_rng([round(1000 * spread), round(1000 * change)])
    found: dict[str, list[Claims]] = {name: [] for name in WAYS}
    for _ in range(comparisons):
        sides = simulate_pairs(random, spread, change, noise)
        for name, judge in WAYS.items():
            found[name].append(judge(*sides))
    return {
        name: Claims(
            float(np.mean([each.slower for each in some])),
            None
            if some[0].fine is None
            else float(np.mean([each.fine for each in some if each.fine is not None])),
        )
        for name, some in found.items()
    }


@dataclass(frozen=True)
class Promises:
    """What a comparison promises, and how often it is broken."""

    accused: float  #: share of comparisons that call an unchanged case slower
    false: float  #: share of the cases called slower that are unchanged, averaged over comparisons
    waved: float  #: share of cases slower by just the margin that are called not worse
    missed: float  #: share of cases a fifth slower that are not called so


def check_promises(
    comparisons: int, cases: int, memory: float, noise: str = "normal", spread: float = 0.05
) -> Promises:
    """Check what comparisons promise: two fifths of the cases unchanged, two at the margin, the rest +20%."""
    random = np.random.default_rng([cases, round(100 * memory)])
    kinds = np.arange(cases) % 5
    change = np.select([kinds < 2, kinds < 4], [0.0, 0.05], 0.2)
    accused, false, waved, missed = [], [], [], []
    for _ in range(comparisons):
        for mixed in (np.zeros(cases), change):
            old, new = simulate_pairs(random, spread, mixed, noise, cases, memory)
            found = judge_pairs([PairedCase(tuple(row), MARGIN) for row in new - old], USUAL)
            slower = np.array([result.verdict == PairedVerdict.SLOWER for result in found])
            if not mixed.any():
                accused.append(slower.any())
                continue
            false.append(np.sum(slower & (mixed == 0)) / max(np.sum(slower), 1))
            waved.append(np.mean([found[n].verdict in NOT_WORSE for n in np.flatnonzero(mixed == 0.05)]))
            missed.append(np.mean(~slower[mixed == 0.2]))
    return Promises(*(float(np.mean(each)) for each in (accused, false, waved, missed)))


def print_promises(comparisons: int) -> None:
    """Print a table: per cent of broken promises, by the number of cases and what launches remember."""
    words = ("an unchanged case called slower", "false, of those called slower", "waved through", "missed")
    print(f"| cases | noise | correlation of launches | {' | '.join(words)} |")
    print("|---:|---|---:|---:|---:|---:|---:|")
    for cases in (5, 40):
        for noise in ("normal", "t4", "measured"):
            for memory in (0.0, 0.5, 0.9):
                found = check_promises(comparisons, cases, memory, noise)
                cells = " | ".join(f"{share:.1%}" for share in vars(found).values())
                print(f"| {cases} | {noise} | {memory:g} | {cells} |")


def format_share(share: float) -> str:
    """Format a share as a number per 1,000 cases."""
    return f"{1000 * share:.3g}" if share < 0.9995 else "1000"


def main() -> None:
    """Print a table: per 1,000 cases, those called slower, and those proven not worse."""
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| launches scatter by | change | " + " | ".join(WAYS) + " | proven not worse |")
    print("|---|---|" + "---:|" * (len(WAYS) + 1))
    for noise in ("normal", "measured"):
        for spread in SPREADS:
            for change in CHANGES:
                found = average_claims(comparisons, spread, change, noise)
                cells = [format_share(each.slower) for each in found.values()]
                fine = format_share(found["plumbline"].fine or 0.0)
                print(f"| {spread:.0%}, {noise} | {change:+.0%} | {' | '.join([*cells, fine])} |")
    print_promises(20 * comparisons)


if __name__ == "__main__":
    main()
