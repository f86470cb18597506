"""All references that a session needs, loaded and checked before anything runs."""

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

#: What variables do that change an MPI most, by name.
EFFECTS = dict.fromkeys(
    ("MPIR_CVAR_NOLOCAL", "MPIR_PARAM_NOLOCAL", "MPICH_NOLOCAL"), "ranks of a node do not use its shared memory"
)
OFF = ("none", "0", "no", "off", "false")  #: values, ``None`` too, with which they do nothing


class ShellDifference(comparability.Difference):
    """A variable of the shell that is set otherwise than for the reference."""

    def __str__(self) -> str:
        ours, theirs = ("unset" if each is None else repr(each) for each in (self.ours, self.theirs))
        return f"{self.name} is {ours}{f' ({self.effect})' if self.effect else ''}, and {theirs}"

    @property
    def effect(self) -> str:
        """What it does to an MPI, of those that change one most; empty of any other, and where it is off."""
        return EFFECTS.get(self.name.split()[-1], "") if str(self.ours).lower() not in OFF else ""

    @property
    def fix(self) -> str:
        """What to do about it."""
        if self.theirs is None:
            return "unset it, or calibrate --output DIR with it"
        return f"set it to {self.theirs!r}, or calibrate --output DIR as it is now"

    @property
    def lasting(self) -> bool:
        """Whether launches to come will differ too: not where the shell can be set as it was."""
        return False


UNTOLD = "does not tell how it was measured"  #: of a reference


@dataclass(frozen=True)
class ReferenceSet:
    """The references of one environment on one partition, and how they were measured."""

    path: Path
    references: dict[Case, Reference]
    provenance: dict[str, Any]
    #: What of a row does not follow from the launches in the provenance, by its case.
    unfounded: Mapping[Case, str] = field(default_factory=dict)
    #: What the other launches say of cases whose launches did not all lie alike, those of most launches first.
    elsewhere: Mapping[Case, tuple[Reference, ...]] = field(default_factory=dict)
    shifting: bool = False  #: whether the machine moves ranks between its cores

    @property
    def exact(self) -> bool:
        """Whether they are of simulated time; then all are."""
        return any(reference.exact for reference in self.references.values())

    def find_placed(self, case: Case, core_latency: float | None) -> Reference | None:
        """Find the reference of launches whose ranks lay as those of this one did; None if there is none.

        :param core_latency: of the launch, in seconds. None where nothing tells, and the row counts; as it does
            if the place of the reference is unknown.
        """
        home = self.references.get(case)
        if home is None or core_latency is None or home.core_latency is None or is_placeless(case):
            return home
        near = (home, *self.elsewhere.get(case, ()))
        return next((each for each in near if is_same_place(each.core_latency, core_latency)), None)

    def find_calibration(self, case: Case) -> Mapping[str, Any] | None:
        """Find how a case was measured: the one calibration that it belongs to. None if unknown."""
        return provenance.find_case_calibration(self.provenance["programs"].get(case.program), case.key)

    def options_of(self, case: Case) -> Mapping[str, Any]:
        """Return what was set by hand for the launches behind a case; nothing, as a rule."""
        return (self.find_calibration(case) or {}).get("options", {})

    def difference(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str], by_hand: Mapping[str, Any]
    ) -> str:
        """Return why a launch may not be held against a case's reference, in one line; empty if it may.

        The arguments are those of :meth:`find_incomparability`.
        """
        found = self.find_incomparability(conditions, case, accepts, by_hand)
        return found.reason if found else ""

    def find_incomparability(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str], by_hand: Mapping[str, Any]
    ) -> comparability.Incomparability | None:
        """Find how a launch under these conditions was measured differently from a case's reference.

        None if it was not, or in nothing but what the site accepts.

        :param accepts: by the name of a fact, why a difference in it is accepted.
        :param by_hand: what options and the shell set for the launch.
        """
        if case in self.unfounded:
            return comparability.Incomparability(f"{self.path.name}: {self.unfounded[case]}", UNTOLD)
        wrong, found = self._compared(conditions, case)
        if wrong:
            return wrong
        found += self._options(case, by_hand)
        # Who sets a variable by an option may want to see what another library below the MPI changes.
        chosen = {BELOW} if by_hand.get("set_env") else set()
        refused = [each for each in found if each.name not in {*accepts, *chosen}]
        # A calibration would be of what was forgotten in a shell: it is to be looked at first.
        refused.sort(key=lambda each: (not isinstance(each, ShellDifference), not getattr(each, "effect", "")))
        if not refused:
            return None
        told = [each for each in refused if not isinstance(each, comparability.UnidentifiedProcessor)]
        fixes = [told[0].fix] if told else []
        if all(each.name in DIFFERENCES for each in refused):
            fixes.append("accept it in the site file")
        fix = " or ".join(fixes)
        others = [each.name for each in refused[1:]]
        more = f"; {', '.join(others)} {'differs' if len(others) == 1 else 'differ'} too" if others else ""
        reason = f"{refused[0]} in {self.path.name}{more}; {fix}"
        names = ", ".join(comparability.name_fact(each.name) for each in refused)
        lasting = all(each.lasting for each in refused)
        return comparability.Incomparability(reason, f"is of another {names}" if lasting else "")

    def accepted(
        self, conditions: LaunchConditions, case: Case, accepts: Mapping[str, str]
    ) -> list[comparability.Difference]:
        """Return the differences that the site accepts."""
        return [each for each in self._compared(conditions, case)[1] if each.name in accepts]

    def _options(self, case: Case, by_hand: Mapping[str, Any]) -> list[comparability.Difference]:
        """List options set by hand for the references and not for the launch, and differing shell variables.

        An option the other way round is what somebody wants to see who sets one.
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
        """Return why nothing can be compared, None if it can; and every fact that differs."""
        if ours.exact != self.exact:
            kinds = ("measured", "simulated")
            what = f"time is {kinds[ours.exact]}, and {kinds[self.exact]} in {self.path.name}"
            return comparability.Incomparability(
                f"{what}; calibrate again", f"is of {kinds[self.exact]} time"
            ), []
        told = self.find_calibration(case)
        if told is None:
            what = f"{self.path.name} does not tell how {case.program} was measured"
            return comparability.Incomparability(f"{what}; calibrate again", UNTOLD), []
        known = told.get("circumstances", {})
        own, theirs = ({ROUNDS: 1} | dict(each) for each in (ours.method, told["method"]))
        if lacking := comparability.find_missing_fact(own, theirs) or comparability.find_missing_fact(
            ours.circumstances, known
        ):
            what = f"{self.path.name} does not tell the {lacking} it was measured with"
            return comparability.Incomparability(f"{what}; calibrate again", UNTOLD), []
        found = [
            comparability.Difference(key, value, theirs[key])
            for key, value in own.items()
            if value != theirs[key]
        ]
        found += comparability.list_differences(ours.circumstances, known)
        if ours.has_unidentified_processor and "cpu_model" not in {each.name for each in found}:
            found.append(
                comparability.UnidentifiedProcessor("cpu_model", ours.cpu_model, told["method"]["cpu_model"])
            )
        return None, found


@dataclass(frozen=True)
class ReferenceCatalog:
    """References by partition and environment. Those without a file are not in it."""

    sets: dict[tuple[str, str], ReferenceSet] = field(default_factory=dict)

    def find_set(self, case: Case) -> ReferenceSet | None:
        """Find the references among which this case would be."""
        return self.sets.get((f"{case.system}:{case.partition}", case.environment))

    def reference(self, case: Case, core_latency: float | None = None) -> Reference | None:
        """Return the reference of a case: of launches whose ranks lay alike, or else that of its row.

        :param core_latency: of the launch that is judged, in seconds; None for the row
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
            known = reference_file.load_references(path, system, partition, place[1])
            sets[place] = make_reference_set(path, known)
    return ReferenceCatalog(sets)


def make_reference_set(path: Path, known: Mapping[Case, Reference]) -> ReferenceSet:
    """Make the references of one file, with all that its provenance says of them."""
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
    """Return the references of one file with what launches, similar cases and sessions say of noise.

    :param launches: those behind each case by where their ranks lay, those behind its row first
    """
    placed = {case: some[0] for case, some in launches.items() if some}
    known = {
        case: replace(each, core_latency=placed[case].core_latency, since=placed[case].since)
        if case in placed
        else each
        for case, each in references.items()
    }
    return _add_noise(known, placed)


def estimate_elsewhere(
    references: Mapping[Case, Reference], launches: Mapping[Case, Sequence[comparability.PlacedLaunches]]
) -> dict[Case, tuple[Reference, ...]]:
    """Estimate the references of launches that lay otherwise than those behind the rows of one file.

    Of few launches too: what similar cases say of their spread stands in for their own.

    :param launches: those behind each case by where their ranks lay, those behind its row first
    """
    found: dict[Case, tuple[Reference, ...]] = {}
    others = {case: some[1:] for case, some in launches.items()}
    for number in range(max(map(len, others.values()), default=0)):
        placed = {
            case: some[number]
            for case, some in others.items()
            if len(some) > number and some[number].core_latency is not None
        }
        rows = _estimate({case: each.values for case, each in placed.items()}, placed, references)
        homes = {case: references[case] for case in rows}
        for case, each in _add_noise(rows, placed, homes).items():
            found[case] = (*found.get(case, ()), each)
    return found


def _estimate(
    values: Mapping[Case, Sequence[float]],
    placed: Mapping[Case, comparability.PlacedLaunches],
    references: Mapping[Case, Reference],
) -> dict[Case, Reference]:
    """Estimate references of these values, in the units of those that are known."""
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
    """Return references with what launches, similar cases and sessions say of their noise, and their headlines.

    :param homes: references of another place, whose spreads stand in where the launches are few
    """
    told = {case: (each.values, each.sessions, each.days) for case, each in placed.items()}
    known = _know_noise(references, told, homes)
    values = {case: each.headlines for case, each in placed.items() if each.headlines}
    told = {case: (values[case], placed[case].sessions, placed[case].days) for case in values}
    second = {case: each.headline for case, each in homes.items() if each.headline}
    headlines = _know_noise(_estimate(values, placed, references), told, second)
    means = find_stand_ins(headlines)
    return {
        case: replace(each, headline=headlines.get(case), prior=each.prior or means.get(class_of(case)))
        for case, each in known.items()
    }


def _know_noise(
    references: Mapping[Case, Reference],
    told: Mapping[Case, tuple[Sequence[float], Sequence[int], Sequence[int]]],
    homes: Mapping[Case, Reference],
) -> dict[Case, Reference]:
    """Return references with what their own launches, similar cases and sessions say of their noise."""
    known = add_evidence(references, told)
    pool = add_priors({**homes, **{c: r for c, r in known.items() if r.launches > r.sessions}})
    fallback = {group_of(each.case): each.prior for each in pool.values() if each.prior}
    known = add_priors(known)
    known = {
        case: each if each.prior else replace(each, prior=fallback.get(group_of(case)))
        for case, each in known.items()
    }
    return add_session_priors(known, load_session_priors())


PROGRAM = "mpicost"


def read_reference_trials(
    roots: Sequence[Path], system: str, partition: str, environment: str
) -> tuple[int, int] | None:
    """Read trials and rounds of a launch of mpicost behind the references of an environment; None if unknown.

    A file that cannot be read has no count here: whoever compares with it says what is wrong.
    """
    try:
        path = reference_file.find_reference_file(roots, system, partition, environment)
        told = read_provenance(path)["programs"].get(PROGRAM) if path else None
        method = provenance.list_calibrations(told)[0]["method"] if told else {}
        trials, rounds = method.get("trials"), method.get(ROUNDS, 1)
    except (UsageError, OSError, ValueError, TypeError, LookupError, AttributeError, RecursionError):
        return None
    if type(trials) is not int or type(rounds) is not int:
        return None
    return (trials, rounds) if trials > 1 and rounds > 0 else None


def describe_unusual_trials(planned: Iterable[PlannedLaunch]) -> list[str]:
    """Describe, a line per number, the environments measured with other trial counts than the papers'."""
    found: dict[int, set[str]] = {}
    for launch in planned:
        if launch.program == PROGRAM and launch.cases and launch.trials != PAPERS:
            found.setdefault(launch.trials, set()).add(launch.environment)
    return [
        f"{trials} trials of mpicost, not {PAPERS}: {', '.join(sorted(environments))}"
        for trials, environments in sorted(found.items())
    ]
