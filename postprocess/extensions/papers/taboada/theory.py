"""Start-up and bandwidth of a send against what the network can do at best, as Taboada et al. hold them.

Their sections 4.2.1 and 5.1: the start-up against that of the network's card, the bandwidth against that of the
card or the bus it is plugged into. What a network can do no measurement tells: the user does.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from postprocess.base.errors import UsageError
from postprocess.base.text_table import NOT_PRINTED, TextTable
from postprocess.extensions.papers.common.data import PaperMeasurements
from postprocess.extensions.papers.common.numbers import (
    write_plain,
    write_rate,
    write_ratio,
    write_share,
)
from postprocess.extensions.papers.common.printed import History
from postprocess.extensions.papers.taboada.measured_models import SEND, fit_measured

FORM = "[MACHINE=]US:MB/S"
NUMBER = r"(\d+(?:\.\d*)?(?:[eE][+-]?\d+)?)"
TOLD = re.compile(rf"(?:(?P<machine>[^=]+)=)?{NUMBER}:{NUMBER}", re.ASCII)
PAPER, STARTUP, BANDWIDTH = "Taboada", "theoretical_startup", "theoretical_bandwidth"
NATIVE = ("MPICH-GM", "ScaMPI", "SCI-MPICH")  #: libraries in print that are no Java
TESTBED = "-single"  #: of the two on SCI the one with a process on each node


@dataclass(frozen=True)
class NetworkTheory:
    """The best that a network can do: start-up in seconds, bandwidth in bytes/s."""

    startup: float
    bandwidth: float


def parse_theory(words: Sequence[str]) -> dict[str, NetworkTheory]:
    """Parse what the user tells of networks, by machine; under an empty name what holds for all others.

    :raises UsageError: for a word that is not of ``FORM``, or two of one machine.
    """
    found: dict[str, NetworkTheory] = {}
    for word in words:
        match = TOLD.fullmatch(word)
        numbers = [float(match[2]) * 1e-6, float(match[3]) * 1e6] if match else [0.0]
        if not match or not all(0 < number < math.inf for number in numbers):
            raise UsageError(
                f"--theory {word}: is not {FORM}; write as in 1.3:12500 or torus=1.8:350"
            )
        machine = match["machine"] or ""
        if machine in found:
            raise UsageError(f"--theory {word}: tells a machine twice; tell it once")
        found[machine] = NetworkTheory(*numbers)
    return found


def build_theory_table(
    measured: PaperMeasurements, theories: Mapping[str, NetworkTheory], history: History
) -> TextTable | None:
    """Build a row for each machine and MPI with a model of its send, and those in print; None without one.

    :raises UsageError: if a theory is of a machine that is not there.
    """
    strangers = sorted(theories.keys() - {"", *measured.machines})
    if strangers:
        there = ", ".join(measured.machines)
        raise UsageError(f"--theory {strangers[0]}: no such machine; there is {there}")
    rows = []
    for model in fit_measured(measured):
        if model.place.routine == SEND and model.fits:
            fit = model.fits[min(model.fits)]
            place = model.place
            rate = 1 / fit.tb if fit.holds else None
            theory = theories.get(place.machine, theories.get(""))
            about = (place.machine, place.environment, f"{place.cache}, {place.sync}")
            rows.append((*about, *_cells(fit.t0, rate, theory)))
    if not rows:
        return None
    return TextTable(
        "Send against what the network can do",
        ("machine", "MPI", "conditions"),
        ("t0 (us)", "in theory", "over it", "1 / tb (MB/s)", "in theory", "share"),
        (*rows, *_printed(history)),
        (
            f"in theory: as --theory {FORM} tells it, in print of the network's card and its bus",
            "no bandwidth where the model is off by more than a quarter",
        ),
    )


def _cells(t0: float, rate: float | None, theory: NetworkTheory | None) -> tuple[str, ...]:
    best = (
        (write_plain(theory.startup * 1e6, "us"), write_ratio(t0 / theory.startup))
        if theory
        else None
    )
    shown = write_rate(rate) if rate else NOT_PRINTED
    part = rate / theory.bandwidth if theory and rate else None
    share = write_share(part, f"{part:.0%}") if part is not None else NOT_PRINTED
    most = write_rate(theory.bandwidth) if theory else NOT_PRINTED
    return (write_plain(t0 * 1e6, "us"), *(best or (NOT_PRINTED,) * 2), shown, most, share)


def _printed(history: History) -> list[tuple[str, ...]]:
    """Return the rows of the networks of which the paper tells what they can do."""
    told = {(f.machine, f.quantity): f.value for f in history.figures if f.paper == PAPER}
    rows = []
    for each in history.models:
        network = each.machine.removesuffix(TESTBED)
        startup, bandwidth = (told.get((network, name)) for name in (STARTUP, BANDWIDTH))
        if each.routine == SEND and each.library in NATIVE and startup and bandwidth:
            theory = NetworkTheory(startup * 1e-6, bandwidth * 1e6)
            t0, tb = each.model.t0.at(2), each.model.tb.at(2)
            about = (f"{each.machine} (in print)", each.library, NOT_PRINTED)
            rows.append((*about, *_cells(t0, 1 / tb, theory)))
    return rows
