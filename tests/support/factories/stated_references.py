"""References with a stated center and spread in the place of those that a machine measured."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from postprocess.model.reference import Reference
from postprocess.references import provenance, reference_file
from postprocess.references.provenance import SERIES


def write_stated_references(
    path: Path, references: Iterable[Reference], origin: dict[str, Any]
) -> None:
    """Write references of a measured file with other numbers, and launches in its provenance that make them."""
    known = {each.case.key: each for each in references}
    for program in origin["programs"].values():
        for told in provenance.list_calibrations(program):
            for series in told[SERIES]:
                launches = max(known[key].launches for key in series["headlines"])
                series["launches"] = series["launches"][:1] * launches
                series["headlines"] = {key: headlines(known[key]) for key in series["headlines"]}
    reference_file.write_references(path, known.values(), origin)


def headlines(reference: Reference) -> list[float]:
    """Values of an even number of launches, with the center and spread of a reference."""
    number = reference.launches
    away = reference.spread * math.sqrt((number - 1) / number)
    return [reference.center * math.exp(away * (-1) ** each) for each in range(number)]
