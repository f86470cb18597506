"""Acceptances of machines that are slower by a known share, beside what the protocol states of them.

Usage: ``python -m tests.statistical.simulated_acceptances [ACCEPTANCES]``.

The true times are those of the simulated machine ``fattree``, and are what is committed. Launches of the
delivered machine are so much slower, with the noise of the nights laid over: normal, with heavy tails, skewed,
and as real launches left it. The package's own functions judge look by look, as ``accept`` does. In the last
rows all launches of a row share their day, which no confidence limit of launches of one day can tell.
"""

import sys
from collections import Counter
from dataclasses import dataclass
from functools import cache

import numpy as np

from postprocess.extensions.procurement.commitments import Commitment, StoredCommitments
from postprocess.extensions.procurement.judge import Acceptance, judge_delivery, list_undecided
from postprocess.extensions.procurement.offer import MeasuredRow, RowKey
from postprocess.extensions.procurement.rules.rules import Rules, lint_text
from postprocess.model.case import ReferencePlace
from postprocess.references.reference_file import load_references
from postprocess.stats.acceptance import (
    OperatingCharacteristic,
    RowVerdict,
    choose_acceptance_looks,
    simulate_characteristic,
)
from tests.statistical.noise import NOISES
from tests.support.factories.offer import BCAST, RULES_TEXT
from tests.support.paths import ROOT

ACCEPTANCES, ROWS = 40, 25
SLOWER = (0.0, 0.02, 0.05, 0.10)
SPREADS = (0.02, 0.04)
DAY = 0.02  #: spread of ln time between days, in the last table
PLACE = ReferencePlace("simulated", "fattree", "simgrid-mpich")
COUNTED = (RowVerdict.MET, RowVerdict.MISSED, RowVerdict.UNDECIDED)


@dataclass(frozen=True)
class Delivery:
    """How a delivered machine differs from what was committed. Spreads are of ln time."""

    slower: float
    spread: float = 0.04
    noise: str = "normal"
    day: float = 0.0


@cache
def rules() -> Rules:
    """The rules of the samples: tolerance 5%, looks after 5, 10 and 20 launches."""
    found, faults = lint_text(RULES_TEXT)
    assert found and not faults
    return found


@cache
def true_times() -> tuple[float, ...]:
    """Seconds of some cases of the simulated machine."""
    path = ROOT / "reference_data" / PLACE.system / PLACE.partition / f"{PLACE.environment}.tsv"
    every = list(load_references(path, *PLACE).values())
    return tuple(reference.center for reference in every[:: len(every) // ROWS])[:ROWS]


def build_row(number: int, seconds: np.ndarray | list[float]) -> MeasuredRow:
    key = RowKey("broadcast", number, "mpich-5_0_2", "baseline")
    values = tuple(float(value) for value in seconds)
    return MeasuredRow(key, rules().case[0], BCAST, "mpich", "s", values, False)


def simulate_acceptance(random: np.random.Generator, machine: Delivery) -> Acceptance:
    """Accept a machine: what is undecided is launched again until looks end."""
    own, times = rules(), np.array(true_times())
    looks = choose_acceptance_looks(own.launches, own.risk.most_launches)
    noise = machine.spread * NOISES[machine.noise](random, (len(times), looks[-1]))
    day = machine.day * random.standard_normal((len(times), 1))
    seconds = times[:, None] * (1 + machine.slower) * np.exp(noise + day)
    offered = [build_row(number, [time]) for number, time in enumerate(times, 1)]
    kept = StoredCommitments(1, "", tuple(Commitment(row.key.key, row.values[0]) for row in offered))
    taken = dict.fromkeys(range(1, len(times) + 1), looks[0])
    while True:
        delivered = [build_row(number, seconds[number - 1, :n]) for number, n in taken.items()]
        found = judge_delivery(own, offered, kept, delivered)
        open_rows = [row.key.bytes for row in list_undecided(found)]
        more = {n: look for n in open_rows if (look := next_look(looks, taken[n]))}
        if not more:
            return found
        taken |= more


def next_look(looks: tuple[int, ...], launches: int) -> int | None:
    """Return the look after so many launches; None if there is none."""
    return next((look for look in looks if look > launches), None)


def count_verdicts(seed: int, machine: Delivery, acceptances: int) -> Counter[RowVerdict]:
    found: Counter[RowVerdict] = Counter()
    for number in range(acceptances):
        accepted = simulate_acceptance(np.random.default_rng([seed, number]), machine)
        found.update(row.found.verdict for row in accepted.rows)
    return found


@cache
def state_characteristic(spread: float) -> OperatingCharacteristic:
    """What the protocol states of launches that differ so much."""
    own = rules()
    looks = choose_acceptance_looks(own.launches, own.risk.most_launches)
    risks = own.risk.good_failed, own.risk.slow_accepted
    return simulate_characteristic(spread, own.tolerance, looks, *risks, SLOWER)


def main(acceptances: int) -> None:
    """Print counted and stated shares of rows that are met, missed and undecided."""
    print(f"{acceptances} acceptances of {ROWS} rows each, tolerance {rules().tolerance:.0%}")
    print("noise     spread day  slower     met (stated)  missed (stated)  undecided")
    machines = [Delivery(slower, spread, noise) for noise in NOISES for spread in SPREADS for slower in SLOWER]
    machines += [Delivery(slower, 0.02, "measured", DAY) for slower in SLOWER]
    for machine in machines:
        counts = count_verdicts(int(1000 * machine.slower), machine, acceptances)
        shares = [counts[verdict] / counts.total() for verdict in COUNTED]
        drawn, place = state_characteristic(machine.spread), SLOWER.index(machine.slower)
        print(
            f"{machine.noise:10}{machine.spread:5.0%} {machine.day:4.0%} {machine.slower:6.0%}"
            f"  {shares[0]:7.1%} ({drawn.met[place]:6.1%}) {shares[1]:7.1%} ({drawn.missed[place]:6.1%})"
            f"  {shares[2]:7.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ACCEPTANCES)
