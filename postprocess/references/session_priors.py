"""The stored table of spreads between sessions: ``reference_data/session_spreads.tsv``."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.model.reference import Prior
from postprocess.stats.session_prior import COLUMNS, Key

PATH = Path(__file__).parents[2] / "reference_data" / "session_spreads.tsv"


@cache
def load_session_priors(path: Path = PATH) -> dict[Key, Prior]:
    """Load the table by cache state and smallest size; lines that begin with ``#`` name its source.

    :raises UsageError: naming file, row and fix
    """
    try:
        lines = files.read_text(path).splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path}: cannot be read: {error}; restore the file") from None
    rows = [(n, line) for n, line in enumerate(lines, 1) if line and not line.startswith("#")]
    if not rows or tuple(rows[0][1].split("\t")) != COLUMNS or len(rows) == 1:
        raise UsageError(f"{path}: has not the columns {', '.join(COLUMNS)}; restore the file")
    found = {}
    for number, line in rows[1:]:
        try:
            cache_state, least, spread, degrees, _, _ = line.split("\t")
            prior = Prior(float(spread), float(degrees))
            if not (0 < prior.spread < 1 and 1 <= prior.degrees < 1000):
                raise ValueError("spread or degrees out of range")
            found[cache_state, int(least)] = prior
        except ValueError as error:
            raise UsageError(f"{path}: row {number}: {error}; restore the file") from None
    return found


def lint_session_priors(path: Path) -> list[str]:
    """Find the first fault of the table, if it has one."""
    try:
        load_session_priors(path)
    except UsageError as error:
        return [str(error)]
    return []
