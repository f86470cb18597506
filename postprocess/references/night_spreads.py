"""What a session knows of the spread between nights, by case: ``nights.json`` in its folder.

It is taken from the store once, before anything runs: the checks and whoever judges read this file, so that
both have the same bands, whatever the store gets meanwhile.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple
from functools import cache
from pathlib import Path

from postprocess.base import files
from postprocess.base.documents.strict_json import read_json
from postprocess.base.errors import UsageError
from postprocess.stats.night_spread import NightSpread

FILE = "nights.json"


def write_night_spreads(path: Path, told: Mapping[str, NightSpread]) -> None:
    """Write the spreads by the key of their case. OSError as met."""
    rows = [f"{json.dumps(key)}: {json.dumps(astuple(told[key]))}" for key in sorted(told)]
    files.write_text(path, "{\n" + ",\n".join(rows) + "\n}\n")


@cache
def load_night_spreads(path: Path | None) -> Mapping[str, NightSpread]:
    """Load the spreads by the key of their case, of a session that knows some; read once in each process.

    :raises UsageError: naming the file, if it is not as it was written
    """
    if path is None:
        return {}
    try:
        return {key: parse_spread(row) for key, row in read_json(path).items()}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; run the session again") from None
    except (ValueError, TypeError, AttributeError) as error:
        raise UsageError(f"{path}: is damaged: {error}; run the session again") from None


def parse_spread(row: list) -> NightSpread:
    """Parse the row of a case.

    :raises ValueError: for numbers that no nights have; TypeError for what are none
    """
    if [type(each) for each in row] != [int, float, float, float]:
        raise TypeError(f"{row}: are no whole number and three others")
    told = NightSpread(*row)
    well = told.nights > 0 and 0 <= told.variance < 100 and 0 < told.degrees <= told.nights
    if not (well and 0 <= told.share <= 1):
        raise ValueError(f"{row}: are no numbers of nights")
    return told
