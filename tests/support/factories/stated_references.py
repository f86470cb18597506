"""References with a stated center and spread in the place of those that a machine measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from datetime import timedelta
from pathlib import Path
from typing import Any

from postprocess.base.formats import parse_utc
from postprocess.model.reference import Reference
from postprocess.references import provenance, reference_file
from postprocess.references.provenance import SERIES, VALUES


def write_stated_references(path: Path, references: Iterable[Reference], origin: dict[str, Any]) -> None:
    """Write references of a measured file with other numbers, and launches in its provenance that make them."""
    known = {each.case.key: each for each in references}
    for program in origin["programs"].values():
        for told in provenance.list_calibrations(program):
            for series in told[SERIES]:
                series.pop(VALUES, None)
                launches = max(known[key].launches for key in series["headlines"])
                series["launches"] = spread_over_days(series["launches"][0], launches)
                series["headlines"] = {key: headlines(known[key]) for key in series["headlines"]}
    reference_file.write_references(path, known.values(), origin)


def spread_over_days(one: dict[str, Any], launches: int) -> list[dict[str, Any]]:
    """Return so many launches like this one, of four days, which are sessions enough."""
    end = parse_utc(one["ended_utc"])
    days = [timedelta(days=4 * number // launches) for number in range(launches)]
    return [one | {"ended_utc": (end - day).strftime("%Y-%m-%dT%H:%M:%SZ")} for day in days]


def headlines(reference: Reference) -> list[float]:
    """Values of an even number of launches, with the center and spread of a reference."""
    number = reference.launches
    away = reference.spread * math.sqrt((number - 1) / number)
    return [reference.center * math.exp(away * (-1) ** each) for each in range(number)]
