"""How much tests with drawn faults do: little in CI, more where ``PLUMBLINE_THOROUGH=1`` asks for it."""

import os

THOROUGH = os.environ.get("PLUMBLINE_THOROUGH") == "1"


def rounds(few: int, many: int) -> int:
    """Return how often to draw a fault."""
    return many if THOROUGH else few
