"""Write reference files from calibration launches. Rows that were not measured stay as they are."""

import json
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from postprocess.base import files
from postprocess.base.errors import UsageError, explaining
from postprocess.base.formats import compute_slowdown, plural
from postprocess.base.grouping import group_pairs
from postprocess.calibration import samples
from postprocess.calibration.ledger import SCHEMA, CalibrationLaunch, locate_ledger, read_ledger_file
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.conditions import ROUNDS
from postprocess.model.measurement import TrialSummary
from postprocess.model.plan import PlannedLaunch
from postprocess.model.reference import ENOUGH_LAUNCHES, Reference
from postprocess.model.routines.mpicost import OWN_PROGRAM, OWN_PROGRAMS, is_placeless
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import add_noise, read_provenance
from postprocess.references.comparability import join_conditions, name_fact, read_all_placed
from postprocess.results.store import SUFFIX, read_session
from postprocess.stats.band import compute_band, estimate_exact_references, estimate_references
from postprocess.stats.launches import group_placements, is_same_place, summarise_trials
from site_configs.schema.fields import SESSION_GAP_MINUTES
from site_configs.schema.manual_settings import is_replaced_by

#: How many times as slow the new reference of a case is as the old one
Slower = Mapping[Case, float]


def is_absorbing(before: Reference, after: Reference) -> bool:
    """Return whether the new center is beyond the slow limit of the old reference."""
    return before.unit == after.unit and compute_band(before).too_slow(after.center)


def find_absorbed_regressions(
    old: Mapping[Case, Reference], new: Mapping[Case, Reference]
) -> dict[Case, float]:
    """Find cases whose new center is a regression by the old reference, if that has enough launches.

    Returns how many times as slow the new center is, by case.

    :param old: all references of the file, with their noise
    """
    pairs = {case: (old[case], after) for case, after in new.items() if case in old}
    return {
        case: compute_slowdown(after.center, before.center, after.unit)
        for case, (before, after) in pairs.items()
        if before.launches >= ENOUGH_LAUNCHES
        and is_same_place(before.core_latency, after.core_latency)
        and is_absorbing(before, after)
    }


def describe_absorbed(found: Slower) -> str:
    """Describe which old references stay, the worst of them, and how to take the new ones."""
    worst = max(found, key=lambda case: (found[case], case))
    return (
        f"{plural(len(found), 'case')} would absorb a slowdown (largest: {worst.key}, {found[worst] - 1:.1%}): "
        "the old references stay; find the cause, or accept it by ./plumbline calibrate --afresh"
    )


#: Facts of the starting machine by which references age.
AGEING = ("host", "cpu_model", "kernel", "firmware")
Say = Callable[[ReferencePlace, str, str], None]  #: gets the place, the program and a line
Hold = Callable[[Slower], None]

SCATTERED = (
    "launches of some cases differ by more than a factor of 1,000, and make no reference; "
    "run ./plumbline calibrate on the idle machine"
)


def refuse_mixed(launches: Sequence[CalibrationLaunch]) -> None:
    """Refuse launches of one session that ran on different machines or builds.

    :raises UsageError: names the facts in which they differ.
    """
    for place, _, members in samples.group_by_program(launches):
        for launch in members:
            if mixed := samples.list_differing_facts(members[0], launch) or samples.list_differing_binding(
                launch, members
            ):
                fix = "calibrate nodes of one kind at a time"
                raise UsageError(f"{place.environment}: launches differ in {', '.join(mixed)}; {fix}")


def say_line(say: Callable[[str], None]) -> Say:
    """Return a callback that says only the line."""
    return lambda place, program, line: say(line)


def ignore_message(place: ReferencePlace, program: str, line: str) -> None:
    """Ignore a message."""


def update_references(
    root: Path,
    launches: Sequence[CalibrationLaunch],
    cases: set[Case] | None = None,
    only_new: bool = False,
    say: Say = ignore_message,
    hold: Hold | None = None,
) -> list[Path]:
    """Write the references that follow from these launches below ``root``; return the files.

    :param cases: cases that may be written; None for all
    :param only_new: an automatic calibration never changes an existing reference, except one that was made with
    options by hand which its own launches lack
    :param say: gets each program whose references stay although it was measured, and why
    :param hold: gets the cases whose references stay because the new ones would absorb a slowdown; if None,
    they are taken
    :raises UsageError: if an existing file was measured by another method, is damaged or cannot be written.
    """
    measured = samples.collect_samples(launches)
    chosen = {case: sample for case, sample in measured.items() if cases is None or case in cases}
    left_out = describe_left_out(launches)
    paths = []
    for place in sorted({ReferencePlace.of(case) for case in chosen}):
        path, staying = write_place(root, place, select_place(chosen, place), only_new, hold)
        paths += [path] if path.exists() else []
        for program, why in sorted(staying.items()):
            reasons = left_out.get((place, program), "")
            say(place, program, f"{place.environment}, {program}: {reasons}{why}")
    return paths


def describe_left_out(launches: Iterable[CalibrationLaunch]) -> dict[tuple[ReferencePlace, str], str]:
    """Describe how many launches of each place and program do not count, and why; ``; `` follows each."""
    reasons: dict[tuple[ReferencePlace, str], str] = {}
    for excluded in samples.list_excluded(launches):
        key = excluded.place, excluded.program
        count = plural(excluded.launches, "earlier launch", "es")
        differing = ", ".join(map(name_fact, excluded.differing))
        reasons[key] = reasons.get(key, "") + f"{count} left out: another {differing}; "
    return reasons


def select_place(
    measured: Mapping[Case, samples.CaseSample], place: ReferencePlace
) -> dict[Case, samples.CaseSample]:
    return {case: sample for case, sample in measured.items() if ReferencePlace.of(case) == place}


def write_place(
    root: Path,
    place: ReferencePlace,
    measured: dict[Case, samples.CaseSample],
    only_new: bool,
    hold: Hold | None,
) -> tuple[Path, dict[str, str]]:
    """Write one reference file: new rows replace old ones or are added.

    :return: the file, and by program why measured rows stay
    """
    path = reference_file.locate_references(root, *place)
    rows = reference_file.load_references(path, *place) if path.exists() else {}
    old = read_provenance(path) if rows else None
    if only_new:
        measured = {
            case: sample
            for case, sample in measured.items()
            if case not in rows or has_other_options(old, case, sample)
        }
    if not measured:
        return path, {}
    for program, entry in sorted((old or {}).get("programs", {}).items()):
        check_method(path, entry, select_program(measured, program))
    staying = {
        case: why
        for case, sample in measured.items()
        if case in rows
        and (why := explain_kept_reference(rows[case], find_calibration_options(old, case), sample))
    }
    measured = {case: sample for case, sample in measured.items() if case not in staying}
    new = build_references(path, measured) if measured else {}
    scattered = [case for case, reference in new.items() if reference.spread > reference_file.MOST_SPREAD]
    staying |= dict.fromkeys(scattered, SCATTERED)
    new = {case: reference for case, reference in new.items() if case not in scattered}
    measured = {case: measured[case] for case in new}
    if hold and old and (slower := find_absorbed_regressions(add_noise(rows, read_all_placed(rows, old)), new)):
        hold(slower)
        measured = {case: sample for case, sample in measured.items() if case not in slower}
        new = {case: new[case] for case in measured}
    if measured:
        reference_file.write_references(path, (rows | new).values(), build_provenance(old, rows, measured))
    return path, {case.program: why for case, why in staying.items()}


def explain_kept_reference(old: Reference, options: Mapping[str, Any], new: samples.CaseSample) -> str:
    """Explain why a reference is not replaced by a new measurement; empty if it is.

    One launch under other conditions must not replace a reference of many by one that fails nothing: a night
    under these conditions is ``not-comparable``, which everybody sees. And no night has options set by hand.

    :param options: options set by hand, with which the old one was measured
    """
    by_hand = new.launches[-1].by_hand
    if by_hand and not options:
        return "the reference without options by hand stays; choose another place with --output"
    few = old.launches >= ENOUGH_LAUNCHES > len(new.at_home.launches) and not old.exact
    if few and (by_hand or not options):
        return f"until there are {ENOUGH_LAUNCHES}, the old reference stays"
    return ""


def has_other_options(origin: Mapping[str, Any] | None, case: Case, new: samples.CaseSample) -> bool:
    """Return whether the launches behind a row had options set by hand that the new ones lack."""
    return is_replaced_by(find_calibration_options(origin, case), new.launches[-1].by_hand)


def find_calibration_options(origin: Mapping[str, Any] | None, case: Case) -> Mapping[str, Any]:
    """Return the options set by hand for the launches behind a row, from its provenance."""
    entry = (origin or {}).get("programs", {}).get(case.program)
    return (provenance.find_case_calibration(entry, case.key) or {}).get("options", {})


def select_program(measured: Mapping[Case, samples.CaseSample], program: str) -> dict[Case, samples.CaseSample]:
    return {case: sample for case, sample in measured.items() if case.program == program}


def build_references(path: Path, measured: Mapping[Case, samples.CaseSample]) -> dict[Case, Reference]:
    """Build the references of one place from its launches.

    :raises UsageError: if simulated time does not repeat, or a value is not a time.
    """
    exact = any(sample.launches[-1].exact for sample in measured.values())
    homes = {case: sample.at_home for case, sample in measured.items()}
    values = {case: home.values for case, home in homes.items()}
    sessions = {case: home.sessions for case, home in homes.items()}
    try:
        references = estimate_exact_references(values) if exact else estimate_references(values, sessions)
    except ValueError as error:
        fix = "; calibrate --afresh leaves earlier launches out" if exact else ""
        raise UsageError(f"{path}: {error}; nothing is written{fix}") from None
    return {
        reference.case: replace(
            reference,
            unit=measured[reference.case].unit,
            core_latency=None
            if is_placeless(reference.case)
            else group_placements(homes[reference.case].core_latencies)[0].core_latency,
        )
        for reference in references
    }


def check_method(path: Path, told: Mapping[str, Any], measured: Mapping[Case, samples.CaseSample]) -> None:
    """Refuse launches of two methods, which cannot share a file.

    :raises UsageError: names what differs between the methods.
    """
    for sample in measured.values():
        method = sample.launches[-1].facts["method"]
        for calibration in provenance.list_calibrations(told):
            if changed := samples.list_differing_keys(calibration["method"], method):
                fix = "move the file away, or choose another place with --output"
                raise UsageError(
                    f"{path}: its references were measured with another {', '.join(changed)}; {fix}"
                )


def check_planned_trials(root: Path, planned: Iterable[PlannedLaunch]) -> None:
    """Refuse before anything is launched what :func:`check_method` would refuse when all of it is measured.

    :param planned: launches whose values are to become references below ``root``
    :raises UsageError: if references there were measured with other trials or rounds
    """
    wanted = {
        (ReferencePlace.of(launch.cases[0]), launch.trials, launch.rounds)
        for launch in planned
        if launch.program == OWN_PROGRAM and launch.cases
    }
    for place, trials, rounds in sorted(wanted):
        path = reference_file.locate_references(root, *place)
        told = read_provenance(path)["programs"].get(OWN_PROGRAM) if path.exists() else None
        for calibration in provenance.list_calibrations(told) if told else ():
            method = calibration["method"]
            both = (method.get("trials"), method.get(ROUNDS, 1)), (trials, rounds)
            if both[0] != both[1]:
                were, are = (f"{some} trials in {plural(number, 'round')}" for some, number in both)
                fix = "leave --trials and --rounds out to measure as they were, or move the file away"
                raise UsageError(f"{path}: its references were measured with {were}, not {are}; {fix}")


def build_provenance(
    old: Mapping[str, Any] | None, rows: Mapping[Case, Reference], measured: Mapping[Case, samples.CaseSample]
) -> dict[str, Any]:
    """Build the provenance of a file with newly measured rows; the other rows keep theirs."""
    programs = dict(old["programs"]) if old else {}
    for program in sorted({case.program for case in measured}):
        new = select_program(measured, program)
        stay = [case.key for case in rows if case.program == program and case not in new]
        earlier = provenance.restrict_calibrations(programs[program], stay) if old and stay else []
        record = build_calibration_record(new, alone=not earlier)
        programs[program] = {provenance.CALIBRATIONS: [*earlier, record]}
    last = max((sample.launches[-1] for sample in measured.values()), key=lambda launch: launch.ended_utc)
    return {"machine": dict(last.machine), "programs": programs}


def build_calibration_record(measured: Mapping[Case, samples.CaseSample], alone: bool) -> dict[str, Any]:
    """Build the provenance of one program's new references: what ran, on what, when, and every value.

    Simulated values are not repeated, because the reference states them; nor are the cases if they are all
    cases of the program (``alone``).
    """
    launches = {id(launch): launch for sample in measured.values() for launch in sample.launches}
    last = max(launches.values(), key=lambda one: one.ended_utc)
    record = {
        **last.facts,
        "date_utc": last.ended_utc,
        "machine": dict(last.machine),
        "sessions": sorted({launch.session for launch in launches.values()}),
    }
    record["circumstances"] = {}
    for launch in launches.values():
        record["circumstances"] = join_conditions(record["circumstances"], launch.circumstances)
    if last.session_gap_minutes != SESSION_GAP_MINUTES:
        record[provenance.SESSION_GAP] = last.session_gap_minutes
    if last.by_hand:
        record["options"] = dict(last.by_hand)
    if transports := find_last_transports(launches.values()):
        record[provenance.TRANSPORTS] = transports
    return record if last.exact and alone else record | {provenance.SERIES: build_series_record(measured)}


def find_last_transports(launches: Iterable[CalibrationLaunch]) -> dict[str, list[str]]:
    """Return the transports of each class of pairs in the last launch that recorded them."""
    transports: dict[str, list[str]] = {}
    for launch in sorted(launches, key=lambda one: one.ended_utc):
        transports |= {pairs: list(names) for pairs, names in launch.transports.items()}
    return transports


def build_series_record(measured: Mapping[Case, samples.CaseSample]) -> list[dict[str, Any]]:
    """Build the series of headlines, one for all cases with the same launches."""
    families = group_pairs((tuple(map(id, sample.launches)), sample) for _, sample in sorted(measured.items()))
    return [
        {
            "launches": [build_launch_record(launch) for launch in family[0].launches],
            provenance.HEADLINES: {sample.case.key: sample.headlines for sample in family},
        }
        | build_value_record(family)
        | build_placement_record(family)
        for family in families.values()
    ]


def build_value_record(family: Sequence[samples.CaseSample]) -> dict[str, Any]:
    """Build the record of judged values, for cases whose headline differs from them."""
    values = {sample.case.key: sample.values for sample in family if sample.values != sample.headlines}
    return {provenance.VALUES: values} if values else {}


def build_placement_record(family: Sequence[samples.CaseSample]) -> dict[str, Any]:
    """Build the record of core-to-core times, for cases with at least one."""
    latencies = {sample.case.key: sample.core_latencies for sample in family}
    measured = {key: times for key, times in latencies.items() if any(times)}
    return {provenance.CORE_LATENCIES: measured} if measured else {}


def build_launch_record(one: CalibrationLaunch) -> dict[str, Any]:
    """Build the record of a launch: when and where it ran, and facts of its machine that may change."""
    record: dict[str, Any] = {"session": one.session, "ended_utc": one.ended_utc, "hosts": list(one.hosts)}
    machine = {fact: one.machine[fact] for fact in AGEING if one.machine.get(fact)}
    record |= {"machine": machine} if machine and not one.exact else {}
    record |= {"kernel": one.kernel} if one.kernel else {}
    return record | ({provenance.LEARNED: True} if one.learned else {})


SAME = 1e-9  #: relative difference of one number, written twice
COLUMNS = ("key", "launch", "t_max", "late", "dropped")


@dataclass(frozen=True)
class Recomputed:
    """The changes of the ledger: shifts of values, as logarithms, and launches without trials."""

    moved: dict[str, list[float]]  #: values by key of the case, changed ones only
    launches: int
    without_trials: int


def recompute_ledger(work: Path, store: Path) -> Recomputed:
    """Recompute the numbers of every calibrated launch of mpicost, and write those that changed.

    :raises UsageError: names the first file of the ledger or the store that is damaged or cannot be written
    """
    moved: dict[str, list[float]] = {}
    launches = without = 0
    for path in sorted(locate_ledger(work).glob("*.json")):
        entries, afresh = read_ledger_file(path)
        trials = read_trials(store / f"{path.stem}{SUFFIX}")
        recomputed = []
        for entry in entries:
            measured = entry.program in OWN_PROGRAMS and not entry.exact
            launches += measured
            new = recompute_launch(entry, trials) if measured else entry
            without += measured and new is None
            recomputed.append(new or entry)
            for key, value in (new or entry).values.items():
                if not math.isclose(value, entry.values[key], rel_tol=SAME):
                    moved.setdefault(key, []).append(math.log(value / entry.values[key]))
        if recomputed != entries:
            write_ledger_file(path, recomputed, afresh)
    return Recomputed(moved, launches, without)


def write_ledger_file(path: Path, launches: Sequence[CalibrationLaunch], afresh: Sequence[str]) -> None:
    """Write the file of a session's launches, replacing the existing one."""
    data = {"schema": SCHEMA, "afresh": sorted(afresh), "launches": [asdict(launch) for launch in launches]}
    with explaining(f"{path}: cannot be written", "make room"):
        files.replace_files({path: (json.dumps(data, indent=1, allow_nan=False) + "\n").encode()})


def read_trials(path: Path) -> dict[int, dict[str, TrialSummary]]:
    """Read the statistics of a session's trials, by launch and key; empty if it is not stored."""
    if not path.exists():
        return {}
    frame = read_session(path, COLUMNS).filter(pl.col("t_max").list.len() > 0)
    summaries: dict[int, dict[str, TrialSummary]] = {}
    for row in frame.iter_rows(named=True):
        summaries.setdefault(row["launch"], {})[row["key"]] = summarise_row(row)
    return summaries


def summarise_row(row: Mapping[str, Any]) -> TrialSummary:
    late = np.array(row["late"], dtype=bool)
    return summarise_trials(np.array(row["t_max"], dtype=np.float64), late, row["dropped"])


def recompute_launch(
    launch: CalibrationLaunch, trials: Mapping[int, Mapping[str, TrialSummary]]
) -> CalibrationLaunch | None:
    """Return a launch with the numbers from its trials; None if the store does not have them.

    The ledger has no number of the launch, so it is recognised by its headlines.
    """
    for summaries in trials.values():
        if all(_is_of(launch, key, summaries) for key in launch.values):
            return replace(
                launch,
                values={key: summaries[key].steady for key in launch.values},
                headlines={key: summaries[key].headline for key in launch.values},
            )
    return None


def _is_of(launch: CalibrationLaunch, key: str, summaries: Mapping[str, TrialSummary]) -> bool:
    """Return whether a stored launch has the same headline for a case as a launch of the ledger."""
    headline = launch.headlines.get(key, launch.values[key])
    return key in summaries and math.isclose(summaries[key].headline, headline, rel_tol=SAME)
