"""What comparisons of two MPIs claim wrongly and overlook, by simulation, beside the ways of the field.

Usage: ``python -m tests.statistical.simulated_upgrades [COMPARISONS]``.

1,000 cases whose launches scatter by 2% or 5% (median; 0.5 on the logarithm of the spread), and a machine whose
speed wanders by 1% from launch to launch, for all cases alike. The package's own functions judge; the ways of
the field see the very same launches.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from postprocess.stats.paired_verdicts import (
    NOT_WORSE,
    USUAL,
    PairedCase,
    PairedVerdict,
    judge_pairs,
)
from tests.statistical.simulated_nights import NOISES

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
    random: np.random.Generator, spread: float, change: float, noise: str = "normal"
) -> tuple[Numbers, Numbers]:
    """Simulate ln times of the old and new side, (cases, pairs) each, taken in turn as ABBA."""
    own = spread * np.exp(random.normal(0, SCATTER, CASES))[:, None]
    times = own * NOISES[noise](random, (CASES, 2 * PAIRS))
    times += np.cumsum(random.normal(0, WANDER, 2 * PAIRS))
    blocks = times.reshape(CASES, PAIRS // 2, 4)
    old, new = blocks[:, :, [0, 3]], blocks[:, :, [1, 2]] + math.log1p(change)
    return old.reshape(CASES, PAIRS), new.reshape(CASES, PAIRS)


def judge_plumbline(old: Numbers, new: Numbers) -> Claims:
    """Judge by the package's rules."""
    found = judge_pairs([PairedCase(tuple(row), MARGIN) for row in new - old], USUAL)
    verdicts = [each.verdict for each in found]
    slower = np.mean([each == PairedVerdict.SLOWER for each in verdicts])
    return Claims(float(slower), float(np.mean([each in NOT_WORSE for each in verdicts])))


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


def average_claims(
    comparisons: int, spread: float, change: float, noise: str = "normal"
) -> dict[str, Claims]:
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


def main() -> None:
    """Print a table: per 1,000 cases, those called slower, and those proven not worse."""
    comparisons = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print("| launches scatter by | change | " + " | ".join(WAYS) + " | proven not worse |")
    print("|---|---|" + "---:|" * (len(WAYS) + 1))
    for noise in ("normal", "measured"):
        for spread in SPREADS:
            for change in CHANGES:
                found = average_claims(comparisons, spread, change, noise)
                cells = [f"{1000 * each.slower:.3g}" for each in found.values()]
                fine = f"{1000 * (found['plumbline'].fine or 0):.3g}"
                print(f"| {spread:.0%}, {noise} | {change:+.0%} | {' | '.join([*cells, fine])} |")


if __name__ == "__main__":
    main()
