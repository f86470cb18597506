"""Sequential confirmation test: launches that confirm or clear a slow case, and its error probabilities.

A curtailed test (Wald, Sequential Analysis, 1947): at most six launches, of which five must be slow, ended as
soon as the outcome is certain. Most of what looks slow by chance is cleared by the first two, and so launches
go to the few cases that may be slow indeed. That five must agree costs little power: a launch of a case that is
slower by more than its band is slow with a probability near one. It allows a band that is left more often,
which helps, since it is the first launch that overlooks a slowdown.
``python -m tests.statistical.simulated_nights`` counts both.
"""

from __future__ import annotations

from typing import Any

from scipy.special import betainc

SLOW_TO_CONFIRM = 5  #: slow launches that confirm a regression
FINE_TO_CLEAR = 2  #: launches that are not slow clear
#: Launches made at a time: the fewest that can clear, what is then missing to confirm, and one more each.
PASSES = (FINE_TO_CLEAR, SLOW_TO_CONFIRM - FINE_TO_CLEAR, *(FINE_TO_CLEAR - 1) * (1,))


def is_cleared(fine: Any) -> Any:
    """Return whether ``fine`` launches that are not slow clear the case; accepts numbers and arrays."""
    return fine >= FINE_TO_CLEAR


def is_decided(slow: Any, fine: Any) -> Any:
    """Return whether no further launch can change the decision."""
    return (slow >= SLOW_TO_CONFIRM) | is_cleared(fine)


def compute_confirmation_probability(chance: Any) -> Any:
    """Compute the probability that fresh launches confirm, each of which is slow with this probability.

    SLOW_TO_CONFIRM of them are slow before FINE_TO_CLEAR are not: of SLOW_TO_CONFIRM + FINE_TO_CLEAR - 1 at
    least SLOW_TO_CONFIRM would be.
    """
    return betainc(SLOW_TO_CONFIRM, FINE_TO_CLEAR, chance)
