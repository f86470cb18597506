"""All references that a session needs, loaded and checked before anything runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

from postprocess.model.case import Case
from postprocess.model.conditions import LaunchConditions
from postprocess.model.reference import Reference
from postprocess.references import provenance, reference_file
from postprocess.references.comparability import (
    Difference,
    UnidentifiedProcessor,
    find_missing_fact,
    list_differences,
)
from postprocess.references.lint import (
    find_unfounded,
    number_case_sessions,
    read_reference_headlines,
)
from postprocess.references.provenance import read_provenance
from postprocess.references.session_priors import load_session_priors
from postprocess.stats.night_spread import NightSpread, add_night_spread
from postprocess.stats.session_prior import add_session_priors
from postprocess.stats.sessions import add_evidence
from postprocess.stats.shrinkage import add_priors
from site_configs.schema.manual_settings import has_all_settings, list_shell_differences
from site_configs.schema.waivers import DIFFERENCES


class ShellDifference(Difference):
    """A variable of the shell that is set otherwise than for the reference."""

    @property
    def fix(self) -> str:
        """What to do about it."""
        if self.theirs is None:
            return "unset it, or calibrate --output DIR with it"
        return f"set it to {self.theirs!r}, or calibrate --output DIR as it is now"


@dataclass(frozen=True)
class ReferenceSet:
    """The references of one environment on one partition, and how they were measured."""

    path: Path
    references: dict[Case, Reference]
    provenance: dict[str, Any]
    #: What of a row does not follow from the launches that the provenance tells, by its case.
    unfounded: Mapping[Case, str] = field(default_factory=dict)

    @property
    def exact(self) -> bool:
        """Whether they are of simulated time; then all are."""
        return any(reference.exact for reference in self.references.values())

    def find_calibration(self, case: Case) -> Mapping[str, Any] | None:
        """Find how a case was measured: the one calibration that it belongs to. None if nothing tells."""
        return provenance.find_case_calibration(
            self.provenance["programs"].get(case.program), case.key
        )

    def options_of(self, case: Case) -> Mapping[str, Any]:
        """Return what was set by hand for the launches behind a case; nothing, as a rule."""
        return (self.find_calibration(case) or {}).get("options", {})

    def difference(
        self,
        conditions: LaunchConditions,
        case: Case,
        accepts: Mapping[str, str],
        by_hand: Mapping[str, Any],
    ) -> str:
        """Return how a launch under these conditions was measured differently from a case's reference.

        One line; empty if it was not, or in nothing but what the site accepts.

        :param accepts: by the name of a fact, why a difference in it is accepted.
        :param by_hand: what options and the shell set for the launch.
        """
        if case in self.unfounded:
            return f"{self.path.name}: {self.unfounded[case]}"
        wrong, found = self._compared(conditions, case)
        found += self._options(case, by_hand)
        refused = [each for each in found if each.name not in accepts]
        if wrong or not refused:
            return wrong
        told = [each for each in refused if not isinstance(each, UnidentifiedProcessor)]
        fixes = [told[0].fix] if told else []
        if all(each.name in DIFFERENCES for each in refused):
            fixes.append("accept it in the site file")
        fix = " or ".join(fixes)
        more = ", ".join(each.name for each in refused[1:])
        return f"{refused[0]} in {self.path.name}{f'; so does {more}' if more else ''}; {fix}"

    def accepted(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str]
    ) -> list[Difference]:
        """Return the differences that the site accepts."""
        return [each for each in self._compared(conditions, case)[1] if each.name in accepts]

    def _options(self, case: Case, by_hand: Mapping[str, Any]) -> list[Difference]:
        """List options set by hand for the references and not for the launch, and differing shell variables.

        An option the other way round is what somebody wants to see who sets one.
        """
        options = self.options_of(case)
        if has_all_settings(by_hand, options):
            return []
        shells = list_shell_differences(by_hand, options).items()
        return [ShellDifference(f"shell variable {name}", *pair) for name, pair in shells] or [
            Difference("options", by_hand, options)
        ]

    def _compared(self, ours: LaunchConditions, case: Case) -> tuple[str, list[Difference]]:
        """Return why nothing can be compared, empty if it can; and every fact that differs."""
        if ours.exact != self.exact:
            kinds = ("measured", "simulated")
            return (
                f"time is {kinds[ours.exact]}, and {kinds[self.exact]} in {self.path.name}; calibrate again",
                [],
            )
        told = self.find_calibration(case)
        if told is None:
            what = f"{self.path.name} does not tell how {case.program} was measured"
            return f"{what}; calibrate again", []
        known = told.get("circumstances", {})
        if lacking := find_missing_fact(ours.method, told["method"]) or find_missing_fact(
            ours.circumstances, known
        ):
            what = f"{self.path.name} does not tell the {lacking} it was measured with"
            return f"{what}; calibrate again", []
        found = [
            Difference(key, value, told["method"][key])
            for key, value in ours.method.items()
            if value != told["method"][key]
        ]
        found += list_differences(ours.circumstances, known)
        if ours.has_unidentified_processor and "cpu_model" not in {each.name for each in found}:
            found.append(
                UnidentifiedProcessor("cpu_model", ours.cpu_model, told["method"]["cpu_model"])
            )
        return "", found


@dataclass(frozen=True)
class ReferenceCatalog:
    """References by partition and environment. Those without a file are not in it."""

    sets: dict[tuple[str, str], ReferenceSet] = field(default_factory=dict)

    def find_set(self, case: Case) -> ReferenceSet | None:
        """Find the references among which this case would be."""
        return self.sets.get((f"{case.system}:{case.partition}", case.environment))

    def reference(self, case: Case) -> Reference | None:
        """Return the reference of a case."""
        reference_set = self.find_set(case)
        return reference_set.references.get(case) if reference_set else None


def load_catalog(
    roots: Sequence[Path],
    places: Iterable[tuple[str, str]],
    nights: Mapping[str, NightSpread] = MappingProxyType({}),
) -> ReferenceCatalog:
    """Load the references of these (``system:partition``, environment) pairs.

    :param nights: what the session knows of the spread between nights, by the key of a case
    :raises postprocess.references.reference_file.ReferenceFileError: for the first file with a fault.
    """
    sets = {}
    for place in sorted(set(places)):
        system, partition = place[0].split(":")
        path = reference_file.find_reference_file(roots, system, partition, place[1])
        if path is not None:
            known = reference_file.load_references(path, system, partition, place[1])
            origin = read_provenance(path)
            unfounded = dict(find_unfounded(known, origin))
            sets[place] = ReferenceSet(path, add_noise(known, origin, nights), origin, unfounded)
    return ReferenceCatalog(sets)


def add_noise(
    references: Mapping[Case, Reference],
    origin: Mapping[str, Any],
    nights: Mapping[str, NightSpread] = MappingProxyType({}),
) -> dict[Case, Reference]:
    """Return the references of one file with what kin, sessions and nights say of their noise."""
    told = {
        case: (read_reference_headlines(origin, case) or [], number_case_sessions(origin, case))
        for case, each in references.items()
        if not each.exact
    }
    known = add_priors(add_evidence(references, told))
    known = {case: add_night_spread(each, nights.get(case.key)) for case, each in known.items()}
    return add_session_priors(known, load_session_priors())
