"""References with a stated center and spread in the place of those that a machine measured."""

import math
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from postprocess.base.formats import parse_utc
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import read_provenance
from postprocess.references.provenance import SERIES, VALUES


def restate_references(
    path: Path, center: float, spread: float, others: Mapping[Case, float] | None = None
) -> None:
    """Give measured references a stated center and spread, as those of 20 launches.

    :param others: centers of some cases
    """
    centers = others or {}
    measured = reference_file.load_references(path, *path.parent.parts[-2:], path.stem)
    stated = [
        Reference(case, centers.get(case, center), spread, 20, known.unit) for case, known in measured.items()
    ]
    write_stated_references(path, stated, read_provenance(path))


def write_stated_references(path: Path, references: Iterable[Reference], origin: dict[str, Any]) -> None:
    """Write references of a measured file with other numbers, and launches in its provenance that make them."""
    known = {reference.case.key: reference for reference in references}
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
