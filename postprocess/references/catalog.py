"""Load and check all references that a session needs, before anything runs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.model.case import Case
from postprocess.model.conditions import ROUNDS, LaunchConditions
from postprocess.model.interposed import BELOW
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import Reference
from postprocess.model.routines.mpicost import PAPERS, is_placeless
from postprocess.references import comparability, provenance, reference_file
from postprocess.references.lint import find_unfounded
from postprocess.references.provenance import read_provenance
from postprocess.references.reference_file import load_session_priors
from postprocess.stats.band import estimate_references
from postprocess.stats.launches import is_same_place
from postprocess.stats.priors import add_priors, add_session_priors, class_of, find_stand_ins, group_of
from postprocess.stats.sessions import add_evidence
from site_configs.schema.manual_settings import has_all_settings, list_shell_differences
from site_configs.schema.waivers import DIFFERENCES

#: Effects of the variables that change an MPI most, by name.
EFFECTS = dict.fromkeys(
    ("MPIR_CVAR_NOLOCAL", "MPIR_PARAM_NOLOCAL", "MPICH_NOLOCAL"), "ranks of a node do not use its shared memory"
)
OFF = ("none", "0", "no", "off", "false")  #: values, like ``None``, that switch them off


class ShellDifference(comparability.Difference):
    """A variable of the shell that is set differently from the reference."""

    def __str__(self) -> str:
        ours, theirs = ("unset" if value is None else repr(value) for value in (self.ours, self.theirs))
        return f"{self.name} is {ours}{f' ({self.effect})' if self.effect else ''}, and {theirs}"

    @property
    def effect(self) -> str:
        """Its effect on an MPI, for the strongest variables; empty for others, or if switched off."""
        return EFFECTS.get(self.name.split()[-1], "") if str(self.ours).lower() not in OFF else ""

    @property
    def fix(self) -> str:
        """What to do about it."""
        if self.theirs is None:
            return "unset it, or calibrate --output DIR with it"
        return f"set it to {self.theirs!r}, or calibrate --output DIR as it is now"

    @property
    def lasting(self) -> bool:
        """Whether future launches will differ too; not if the shell can be set as before."""
        return False


UNTOLD = "does not record how it was measured"  #: said of a reference


@dataclass(frozen=True)
class ReferenceSet:
    """The references of one environment on one partition, with their provenance."""

    path: Path
    references: dict[Case, Reference]
    provenance: dict[str, Any]
    #: Why a row does not follow from the launches in the provenance, by case.
    unfounded: Mapping[Case, str] = field(default_factory=dict)
    #: References of the other placements of a case whose launches had several, the most frequent first.
    elsewhere: Mapping[Case, tuple[Reference, ...]] = field(default_factory=dict)
    shifting: bool = False  #: whether the machine moves ranks between its cores

    @property
    def exact(self) -> bool:
        """Whether they are of simulated time, as all are or none."""
        return any(reference.exact for reference in self.references.values())

    def find_placed(self, case: Case, core_latency: float | None) -> Reference | None:
        """Find the reference of launches with the same placement of ranks; None if there is none.

        :param core_latency: that of the launch, in seconds. The row counts if it is None, or if the placement
            of the reference is unknown.
        """
        home = self.references.get(case)
        if home is None or core_latency is None or home.core_latency is None or is_placeless(case):
            return home
        near = (home, *self.elsewhere.get(case, ()))
        return next(
            (reference for reference in near if is_same_place(reference.core_latency, core_latency)), None
        )

    def find_calibration(self, case: Case) -> Mapping[str, Any] | None:
        """Find the calibration that a case belongs to; None if unknown."""
        return provenance.find_case_calibration(self.provenance["programs"].get(case.program), case.key)

    def options_of(self, case: Case) -> Mapping[str, Any]:
        """Return what was set by hand for the launches behind a case; usually empty."""
        return (self.find_calibration(case) or {}).get("options", {})

    def difference(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str], by_hand: Mapping[str, Any]
    ) -> str:
        """Return why a launch may not be compared with a case's reference, in one line; empty if it may.

        The arguments are those of :meth:`find_incomparability`.
        """
        incomparability = self.find_incomparability(conditions, case, accepts, by_hand)
        return incomparability.reason if incomparability else ""

    def find_incomparability(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str], by_hand: Mapping[str, Any]
    ) -> comparability.Incomparability | None:
        """Find how a launch under these conditions was measured differently from a case's reference.

        None if it was not, or only in facts that the site accepts.

        :param accepts: reasons for accepted differences, by name of the fact.
        :param by_hand: what options and the shell set for the launch.
        """
        if case in self.unfounded:
            return comparability.Incomparability(f"{self.path.name}: {self.unfounded[case]}", UNTOLD)
        wrong, differences = self._compared(conditions, case)
        if wrong:
            return wrong
        differences += self._options(case, by_hand)
        # Users who set a variable by an option may want to see the effect of another library below the MPI.
        chosen = {BELOW} if by_hand.get("set_env") else set()
        refused = [difference for difference in differences if difference.name not in {*accepts, *chosen}]
        # First come settings forgotten in a shell, because a calibration would adopt them.
        refused.sort(
            key=lambda difference: (
                not isinstance(difference, ShellDifference),
                not getattr(difference, "effect", ""),
            )
        )
        if not refused:
            return None
        identified = [
            difference
            for difference in refused
            if not isinstance(difference, comparability.UnidentifiedProcessor)
        ]
        fixes = [identified[0].fix] if identified else []
        if all(difference.name in DIFFERENCES for difference in refused):
            fixes.append("accept it in the site file")
        fix = " or ".join(fixes)
        others = [difference.name for difference in refused[1:]]
        more = f"; {', '.join(others)} {'differs' if len(others) == 1 else 'differ'} too" if others else ""
        reason = f"{refused[0]} in {self.path.name}{more}; {fix}"
        names = ", ".join(comparability.name_fact(difference.name) for difference in refused)
        lasting = all(difference.lasting for difference in refused)
        return comparability.Incomparability(reason, f"is of another {names}" if lasting else "")

    def accepted(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str]
    ) -> list[comparability.Difference]:
        """Return the differences that the site accepts."""
        return [difference for difference in self._compared(conditions, case)[1] if difference.name in accepts]

    def _options(self, case: Case, by_hand: Mapping[str, Any]) -> list[comparability.Difference]:
        """List options set by hand for the references but not for the launch, and differing shell variables.

        An option set for the launch only is no difference: its user wants to see its effect.
        """
        options = self.options_of(case)
        if has_all_settings(by_hand, options):
            return []
        shells = list_shell_differences(by_hand, options).items()
        return [ShellDifference(f"shell variable {name}", *pair) for name, pair in shells] or [
            comparability.Difference("options", by_hand, options)
        ]

    def _compared(
        self, ours: LaunchConditions, case: Case
    ) -> tuple[comparability.Incomparability | None, list[comparability.Difference]]:
        """Return why nothing can be compared, or None, and all facts that differ."""
        if ours.exact != self.exact:
            kinds = ("measured", "simulated")
            what = f"time is {kinds[ours.exact]}, and {kinds[self.exact]} in {self.path.name}"
            return comparability.Incomparability(
                f"{what}; calibrate again", f"is of {kinds[self.exact]} time"
            ), []
        calibration = self.find_calibration(case)
        if calibration is None:
            what = f"{self.path.name} does not record how {case.program} was measured"
            return comparability.Incomparability(f"{what}; calibrate again", UNTOLD), []
        circumstances = calibration.get("circumstances", {})
        our_method, theirs = ({ROUNDS: 1} | dict(method) for method in (ours.method, calibration["method"]))
        if lacking := comparability.find_missing_fact(our_method, theirs) or comparability.find_missing_fact(
            ours.circumstances, circumstances
        ):
            what = f"{self.path.name} does not record the {lacking} it was measured with"
            return comparability.Incomparability(f"{what}; calibrate again", UNTOLD), []
        differences = [
            comparability.Difference(key, value, theirs[key])
            for key, value in our_method.items()
            if value != theirs[key]
        ]
        differences += comparability.list_differences(ours.circumstances, circumstances)
        if ours.has_unidentified_processor and "cpu_model" not in {
            difference.name for difference in differences
        }:
            differences.append(
                comparability.UnidentifiedProcessor(
                    "cpu_model", ours.cpu_model, calibration["method"]["cpu_model"]
                )
            )
        return None, differences


@dataclass(frozen=True)
class ReferenceCatalog:
    """References by partition and environment. Places without a file are left out."""

    sets: dict[tuple[str, str], ReferenceSet] = field(default_factory=dict)

    def find_set(self, case: Case) -> ReferenceSet | None:
        """Return the references of a case's partition and environment."""
        return self.sets.get((f"{case.system}:{case.partition}", case.environment))

    def reference(self, case: Case, core_latency: float | None = None) -> Reference | None:
        """Return the reference of a case: that of launches with the same placement, or that of its row.

        :param core_latency: that of the judged launch, in seconds; None for the row
        """
        reference_set = self.find_set(case)
        return reference_set.find_placed(case, core_latency) if reference_set else None


def load_catalog(roots: Sequence[Path], places: Iterable[tuple[str, str]]) -> ReferenceCatalog:
    """Load the references of these (``system:partition``, environment) pairs.

    :raises postprocess.references.reference_file.ReferenceFileError: for the first file with a fault.
    """
    sets = {}
    for place in sorted(set(places)):
        system, partition = place[0].split(":")
        path = reference_file.find_reference_file(roots, system, partition, place[1])
        if path is not None:
            references = reference_file.load_references(path, system, partition, place[1])
            sets[place] = make_reference_set(path, references)
    return ReferenceCatalog(sets)


def make_reference_set(path: Path, known: Mapping[Case, Reference]) -> ReferenceSet:
    """Build the reference set of one file from its rows and its provenance."""
    origin = read_provenance(path)
    placed = comparability.read_all_placed(known, origin)
    return ReferenceSet(
        path,
        add_noise(known, placed),
        origin,
        unfounded=dict(find_unfounded(known, placed)),
        elsewhere=estimate_elsewhere(known, placed),
        shifting=comparability.is_shifting(placed.values()),
    )


def add_noise(
    references: Mapping[Case, Reference], launches: Mapping[Case, Sequence[comparability.PlacedLaunches]]
) -> dict[Case, Reference]:
    """Return the references of one file with the noise known from launches, similar cases and sessions.

    :param launches: those behind each case by placement of their ranks, those behind its row first
    """
    placed = {case: placements[0] for case, placements in launches.items() if placements}
    located = {
        case: replace(reference, core_latency=placed[case].core_latency, since=placed[case].since)
        if case in placed
        else reference
        for case, reference in references.items()
    }
    return _add_noise(located, placed)


def estimate_elsewhere(
    references: Mapping[Case, Reference], launches: Mapping[Case, Sequence[comparability.PlacedLaunches]]
) -> dict[Case, tuple[Reference, ...]]:
    """Estimate the references of launches with other placements than those behind the rows of one file.

    This works with few launches too, because the spread of similar cases replaces their own.

    :param launches: those behind each case by placement of their ranks, those behind its row first
    """
    estimated: dict[Case, tuple[Reference, ...]] = {}
    others = {case: placements[1:] for case, placements in launches.items()}
    for number in range(max(map(len, others.values()), default=0)):
        placed = {
            case: placements[number]
            for case, placements in others.items()
            if len(placements) > number and placements[number].core_latency is not None
        }
        rows = _estimate({case: placement.values for case, placement in placed.items()}, placed, references)
        homes = {case: references[case] for case in rows}
        for case, reference in _add_noise(rows, placed, homes).items():
            estimated[case] = (*estimated.get(case, ()), reference)
    return estimated


def _estimate(
    values: Mapping[Case, Sequence[float]],
    placed: Mapping[Case, comparability.PlacedLaunches],
    references: Mapping[Case, Reference],
) -> dict[Case, Reference]:
    """Estimate references from these values, in the units of the given references."""
    sessions = {case: placed[case].sessions for case in values}
    return {
        reference.case: replace(
            reference,
            unit=references[reference.case].unit,
            core_latency=placed[reference.case].core_latency,
            since=placed[reference.case].since,
        )
        for reference in estimate_references(values, sessions)
    }


def _add_noise(
    references: Mapping[Case, Reference],
    placed: Mapping[Case, comparability.PlacedLaunches],
    homes: Mapping[Case, Reference] = MappingProxyType({}),
) -> dict[Case, Reference]:
    """Return references with the noise known from launches, similar cases and sessions, and their headlines.

    :param homes: references of another placement, whose spreads are used if launches are few
    """
    evidence = {
        case: (placement.values, placement.sessions, placement.days) for case, placement in placed.items()
    }
    completed = _know_noise(references, evidence, homes)
    values = {case: placement.headlines for case, placement in placed.items() if placement.headlines}
    evidence = {case: (values[case], placed[case].sessions, placed[case].days) for case in values}
    second = {case: home.headline for case, home in homes.items() if home.headline}
    headlines = _know_noise(_estimate(values, placed, references), evidence, second)
    means = find_stand_ins(headlines)
    return {
        case: replace(
            reference, headline=headlines.get(case), prior=reference.prior or means.get(class_of(case))
        )
        for case, reference in completed.items()
    }


def _know_noise(
    references: Mapping[Case, Reference],
    told: Mapping[Case, tuple[Sequence[float], Sequence[int], Sequence[int]]],
    homes: Mapping[Case, Reference],
) -> dict[Case, Reference]:
    """Return references with the noise known from their own launches, similar cases and sessions."""
    completed = add_evidence(references, told)
    pool = add_priors({**homes, **{c: r for c, r in completed.items() if r.launches > r.sessions}})
    fallback = {group_of(reference.case): reference.prior for reference in pool.values() if reference.prior}
    completed = add_priors(completed)
    completed = {
        case: reference if reference.prior else replace(reference, prior=fallback.get(group_of(case)))
        for case, reference in completed.items()
    }
    return add_session_priors(completed, load_session_priors())


PROGRAM = "mpicost"


def read_reference_trials(
    roots: Sequence[Path], system: str, partition: str, environment: str
) -> tuple[int, int] | None:
    """Read trials and rounds of the mpicost launches behind an environment's references; None if unknown.

    A file that cannot be read counts as unknown here: the comparison with it reports the fault.
    """
    try:
        path = reference_file.find_reference_file(roots, system, partition, environment)
        entry = read_provenance(path)["programs"].get(PROGRAM) if path else None
        method = provenance.list_calibrations(entry)[0]["method"] if entry else {}
        trials, rounds = method.get("trials"), method.get(ROUNDS, 1)
    except (UsageError, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    if type(trials) is not int or type(rounds) is not int:
        return None
    return (trials, rounds) if trials > 1 and rounds > 0 else None


def describe_unusual_trials(planned: Iterable[PlannedLaunch]) -> list[str]:
    """Describe the environments whose trial counts differ from the papers', one line per count."""
    unusual: dict[int, set[str]] = {}
    for launch in planned:
        if launch.program == PROGRAM and launch.cases and launch.trials != PAPERS:
            unusual.setdefault(launch.trials, set()).add(launch.environment)
    return [
        f"{trials} trials of mpicost, not {PAPERS}: {', '.join(sorted(environments))}"
        for trials, environments in sorted(unusual.items())
    ]
