"""What pages say of the value that is judged, in the same words everywhere."""

from __future__ import annotations

#: Of a launch.
JUDGED = (
    "A launch of mpicost says its steady time, the mean of the fastest quarter of its trials; one of OSU or "
    "IMB says the judged column of its table."
)
#: Of an analysis that judges something else.
NOT_STEADY = "not the steady time, by which nights and comparisons judge"
