"""False and true findings of a common cause, by simulation.

Usage: ``python -m tests.statistical.simulated_causes [NIGHTS]``.

Nights of 126 cases and their controls with three MPIs, after a calibration of as many nights as launches. What
a night and a launch have in common, and the case's own noise, are normal or of heavy tails (t4). Fresh launches
are of the same night. ``all`` is slower everywhere, ``one`` with one MPI of three.
"""

import sys

import numpy as np

from postprocess.judging.common_cause import find_common_causes
from postprocess.judging.retest import CommonCauseRetest
from postprocess.model.verdict import CaseResult
from tests.support.factories.common import CENTER, Noise, Slower, calibrated, cases, judged

NOISES = {
    "launch and night": Noise(),
    "launch only": Noise(night=0.0, launch=0.014),
    "night only": Noise(night=0.014, launch=0.0),
    "both, heavy tails": Noise(tails=4),
}


def unchanged(_) -> float:
    """Nothing is slower."""
    return 0.0


def all_by(fraction: float) -> Slower:
    """Everything is."""
    return lambda _: fraction


def one_by(fraction: float) -> Slower:
    """One MPI is."""
    return lambda one: fraction * (one.environment == "mpich")


def night(seed: int, noise: Noise, launches: int, slower: Slower) -> tuple[bool, bool]:
    """Whether a night shows a cause, and whether fresh launches leave any."""
    random = np.random.default_rng(seed)
    some = cases()
    catalog = calibrated(random, some, noise, launches)
    common = noise.of_night(random)

    def measured() -> list[CaseResult]:
        factors = np.exp(noise.logs(random, some, common))
        return [
            judged(one, catalog, CENTER * float(factor) * (1 + slower(one)))
            for one, factor in zip(some, factors, strict=True)
        ]

    doubts = [CommonCauseRetest(cause) for cause in find_common_causes(measured(), catalog, {})]
    for doubt in doubts:
        while not doubt.decided:
            fresh = {result.case: result.slowdown for result in measured()}
            doubt.count_value([fresh[case] for case in doubt.cause.probe_cases])
    return bool(doubts), not all(doubt.refuted for doubt in doubts)


def share(nights: int, noise: Noise, launches: int, slower: Slower) -> tuple[float, float]:
    """Of so many nights: how many show a cause, and how many of them still do after fresh launches."""
    found = [night(seed, noise, launches, slower) for seed in range(nights)]
    shown, left = np.mean(found, axis=0)
    return float(shown), float(left)


def main(nights: int) -> None:
    """Print the table."""
    print(f"per 1,000 nights of {nights}: shown, left after fresh launches; then power")
    head = ("noise", "launches", "shown", "left", "all +5%", "all +7%", "all +10%", "one +7%", "one +10%")
    print("".join(f"{word:>18}" if word == "noise" else f"{word:>10}" for word in head))
    slowed = (all_by(0.05), all_by(0.07), all_by(0.1), one_by(0.07), one_by(0.1))
    for name, noise in NOISES.items():
        for launches in (10, 20):
            shown, left = share(nights, noise, launches, unchanged)
            power = [share(max(nights // 10, 1), noise, launches, each)[1] for each in slowed]
            row = [f"{1000 * shown:.1f}", f"{1000 * left:.1f}", *(f"{value:.2f}" for value in power)]
            print(f"{name:>18}{launches:>10}" + "".join(f"{word:>10}" for word in row), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1000)
