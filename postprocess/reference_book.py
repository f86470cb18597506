"""All references that a session needs, loaded and checked before anything runs."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from postprocess import provenance, references
from postprocess.cases import Case
from postprocess.moderation import with_priors
from postprocess.references import Reference
from site_configs.common import PLATFORM_HASH

#: Facts of a launch that its reference must share, or the two are not comparable.
SHARED_METHOD = ("suite_version", "trials", "dropped", "relative_error")
METHOD = (*SHARED_METHOD, "cpu_model")
EXACT_METHOD = (*SHARED_METHOD, "mpi_library", "platform")  #: simulated, on any machine


@dataclass(frozen=True)
class Shelf:
    """The references of one environment on one partition, and how they were measured."""

    path: Path
    references: dict[Case, Reference]
    origin: dict[str, Any]

    @property
    def exact(self) -> bool:
        """Whether they are of simulated time; then all are."""
        return any(reference.exact for reference in self.references.values())

    def difference(self, run: dict[str, Any], exact: bool) -> str:
        """How this run, ``exact`` if its time is simulated, was measured differently from the references.

        One line; empty if it was not.
        """
        if exact != self.exact:
            kinds = ("measured", "simulated")
            return f"time is {kinds[exact]}, and {kinds[self.exact]} in {self.path.name}; calibrate again"
        told = self.origin["programs"].get(run["program"])
        if told is None:
            return (
                f"{self.path.name} does not tell how {run['program']} was measured; calibrate again"
            )
        method = told["method"]
        for key, value in method_of(run, exact).items():
            if key not in method:
                return f"{self.path.name} does not tell the {key} it was measured with; calibrate again"
            if method[key] != value:
                return (
                    f"{key} is {value!r}, and {method[key]!r} in {self.path.name}; calibrate again"
                )
        return ""


@dataclass(frozen=True)
class ReferenceBook:
    """References by partition and environment. Those without a file are not in it."""

    shelves: dict[tuple[str, str], Shelf] = field(default_factory=dict)

    def shelf(self, case: Case) -> Shelf | None:
        """The references among which this case would be."""
        return self.shelves.get((f"{case.system}:{case.partition}", case.environment))

    def reference(self, case: Case) -> Reference | None:
        """The reference of a case."""
        shelf = self.shelf(case)
        return shelf.references.get(case) if shelf else None


def open_book(roots: Sequence[Path], places: Iterable[tuple[str, str]]) -> ReferenceBook:
    """Load the references of these (``system:partition``, environment) pairs.

    :raises postprocess.references.ReferenceError: for the first file with a fault.
    """
    shelves = {}
    for place in sorted(set(places)):
        system, partition = place[0].split(":")
        path = references.find(roots, system, partition, place[1])
        if path is not None:
            known = with_priors(references.load(path, system, partition, place[1]))
            origin = read_origin(path)
            shelves[place] = Shelf(path, known, origin)
    return ReferenceBook(shelves)


def read_origin(path: Path) -> dict[str, Any]:
    """The provenance of a reference file that was loaded, so that it is known to be sound."""
    return json.loads(provenance.beside(path).read_text())


def method_of(run: dict[str, Any], exact: bool) -> dict[str, Any]:
    """The facts of a launch that make it comparable with another; ``exact`` if its time is simulated."""
    if "method" in run:  # of a reference benchmark
        return {**run["method"], "version": run["version"], "cpu_model": run.get("cpu_model")}
    known = {**run, "platform": run.get("environment", {}).get(PLATFORM_HASH)}
    return {key: known.get(key) for key in (EXACT_METHOD if exact else METHOD)}
