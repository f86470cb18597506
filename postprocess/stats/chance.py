"""How often chance alone makes one of several places stand out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy


def compute_tail(chances: Sequence[float], count: int) -> float:
    """Compute the probability that ``count`` or more of independent events happen, each with its own chance.

    The exact distribution (Poisson's binomial), by convolution.

    :param chances: of each event, from 0 to 1
    """
    if count <= 0:
        return 1.0
    distribution = np.ones(1)
    for chance in chances:
        distribution = np.convolve(distribution, (1 - chance, chance))
    return float(min(1.0, distribution[count:].sum()))


def compare_shares(hits: int, of: int, earlier_hits: int, earlier_of: int) -> float:
    """Compute how likely chance has ``hits`` of all hits or more in ``of`` events now, of those now and before.

    Fisher's exact test, one-sided: the hypergeometric tail.
    """
    return float(scipy.stats.hypergeom.sf(hits - 1, of + earlier_of, hits + earlier_hits, of))
