"""The q-values of Benjamini and Hochberg: the share of false calls if all that are at most as large are called.

SciPy has them too, in a module that takes a second to load.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray


def compute_q_values(probabilities: Sequence[float] | NDArray[np.float64]) -> NDArray[np.float64]:
    """Compute the q-value of each probability among all of them.

    :raises ValueError: if one is no probability.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("not all are probabilities")
    order = np.argsort(values)[::-1]
    shares = values[order] * (values.size / np.arange(values.size, 0, -1))
    found = np.empty_like(values)
    found[order] = np.minimum(np.minimum.accumulate(shares), 1.0)
    return found
