"""The share of false alarms among alarms.

Benjamini and Hochberg, Controlling the false discovery rate, JRSS B 57, 1995.
"""

import numpy as np
from numpy.typing import ArrayLike, NDArray


def compute_q_values(chances: ArrayLike) -> NDArray[np.float64]:
    """Compute the q-value of each probability among all of them.

    ``scipy.stats.false_discovery_control`` does the same, and takes half a second to import.

    :raises ValueError: if one is not a probability, such as NaN, which would hide all others.
    """
    values = np.asarray(chances, dtype=float)
    if not np.all((values >= 0) & (values <= 1)):
        raise ValueError("a probability is not between 0 and 1")
    order = np.argsort(values)
    scaled = values[order] * (values.size / np.arange(1, values.size + 1))
    q_values = np.empty_like(values)
    q_values[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return np.clip(q_values, 0.0, 1.0)
