"""Whether delays were injected into a launch, by its own record: no such launch may count for a night.

The library of the self-test (``suite/selftest``) tells the environment of the program that it is there, and
the record of the run tells the environment. So it does not matter how the library came to be loaded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from postprocess.model.interposed import DELAY_LIBRARY, list_interposed

INJECTION_PREFIX = "PLUMBLINE_DELAY_"  #: of every variable that the library reads or sets
#: Set by the library: ``1`` in a launch that it delays, ``0`` in another
TOLD = f"{INJECTION_PREFIX}PLANTED"
LIBRARY = f"lib/{DELAY_LIBRARY}"  #: below the prefix of mpicost


def describe_unplanned_injection(run: Mapping[str, Any], planted: bool) -> str:
    """Describe a launch that was delayed and not planned so, or the other way round; empty for any other.

    :param run: the run record of the launch
    :param planted: whether the plan says that delays are planted into it
    :returns: one line; empty if all is as planned
    """
    environment = run.get("environment", {})
    if planted:
        return "" if TOLD in environment else "the delays of the self-test were not planted"
    traces = sorted(name for name in environment if name.startswith(INJECTION_PREFIX))
    if DELAY_LIBRARY in environment.get("LD_PRELOAD", "") or DELAY_LIBRARY in list_interposed(run):
        traces.append("LD_PRELOAD")
    if not traces:
        return ""
    return f"{traces[0]} is set: delays are planted into it, which is for ./plumbline selftest only"


def is_delayed(run: Mapping[str, Any]) -> bool:
    """Return whether the library delayed this launch; it may delay only a fraction of launches."""
    return run.get("environment", {}).get(TOLD) == "1"
