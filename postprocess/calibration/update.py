"""Turns the launches of calibrations into reference files. Rows that were not measured stay as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.calibration.ledger import Taken
from postprocess.calibration.regression_guard import Slower, absorbing
from postprocess.calibration.samples import (
    Sample,
    bound_otherwise,
    by_program,
    different,
    differing,
    passed,
    samples,
)
from postprocess.model.case import Case, ReferencePlace
from postprocess.model.reference import ENOUGH_LAUNCHES, Reference
from postprocess.references import provenance, reference_file
from postprocess.references.catalog import read_origin
from postprocess.references.comparability import joint
from postprocess.stats.estimate import calibrate, calibrate_exactly
from site_configs.schema.manual_settings import gives_way

#: Facts of the machine that started a launch by which references age.
AGEING = ("host", "cpu_model", "kernel", "firmware")
Say = Callable[[str], None]
Hold = Callable[[Slower], None]


def refuse_mixed(launches: Sequence[Taken]) -> None:
    """Launches of one session that are of different machines or builds make no reference together.

    :raises UsageError: naming what they differ in.
    """
    for place, _, some in by_program(launches):
        for each in some:
            if mixed := differing(some[0], each) or bound_otherwise(each, some):
                fix = "calibrate nodes of one kind at a time"
                raise UsageError(f"{place.environment}: launches differ in {mixed}; {fix}")


def silent(line: str) -> None:
    """Ignore a message."""


def update(
    root: Path,
    launches: Sequence[Taken],
    cases: set[Case] | None = None,
    only_new: bool = False,
    say: Say = silent,
    hold: Hold | None = None,
) -> list[Path]:
    """Write the references that follow from these launches below ``root``; return the files.

    :param cases: that may be written; None for all
    :param only_new: an automatic calibration never moves a reference that exists, except one that was made
        with options by hand which its own launches lack
    :param say: is told of each program whose references stay although it was measured, and why
    :param hold: is told of the cases whose references stay because the new ones would absorb a slowdown; None:
        they are taken, too
    :raises UsageError: if an existing file was measured by another method, is damaged or cannot be written.
    """
    measured = samples(launches)
    chosen = {case: each for case, each in measured.items() if cases is None or case in cases}
    left_out = why_left_out(launches)
    paths = []
    for place in sorted({ReferencePlace.of(case) for case in chosen}):
        path, staying = write_place(root, place, among(chosen, place), only_new, hold)
        paths.append(path)
        for program, why in sorted(staying.items()):
            say(f"{place.environment}, {program}: {left_out.get((place, program), '')}{why}")
    return paths


def why_left_out(launches: Iterable[Taken]) -> dict[tuple[ReferencePlace, str], str]:
    """Of each place and program how many launches do not count, and why; ``; `` follows each."""
    found: dict[tuple[ReferencePlace, str], str] = {}
    for each in passed(launches):
        key = each.place, each.program
        count = plural(each.launches, "earlier launch", "es")
        found[key] = found.get(key, "") + f"{count} left out: another {each.differing}; "
    return found


def among(measured: Mapping[Case, Sample], place: ReferencePlace) -> dict[Case, Sample]:
    """The cases of one place."""
    return {case: each for case, each in measured.items() if ReferencePlace.of(case) == place}


def write_place(
    root: Path,
    place: ReferencePlace,
    measured: dict[Case, Sample],
    only_new: bool,
    hold: Hold | None,
) -> tuple[Path, dict[str, str]]:
    """Write one reference file: new rows in the place of old ones, or beside them.

    :return: the file, and why rows of a program stay that were measured, by program
    """
    path = reference_file.location(root, *place)
    rows = reference_file.load(path, *place) if path.exists() else {}
    old = read_origin(path) if rows else None
    if only_new:
        measured = {
            case: each
            for case, each in measured.items()
            if case not in rows or of_other_options(old, case, each)
        }
    if not measured:
        return path, {}
    for program, told in sorted((old or {}).get("programs", {}).items()):
        refuse_method(path, told, of_program(measured, program))
    staying = {
        case: why
        for case, each in measured.items()
        if case in rows and (why := why_stays(rows[case], options_behind(old, case), each))
    }
    measured = {case: each for case, each in measured.items() if case not in staying}
    new = rows_of(path, measured) if measured else {}
    if hold and (slower := absorbing(rows, new)):
        hold(slower)
        measured = {case: each for case, each in measured.items() if case not in slower}
        new = {case: new[case] for case in measured}
    if measured:
        reference_file.write(path, (rows | new).values(), origin_of(old, rows, measured))
    return path, {case.program: why for case, why in staying.items()}


def why_stays(old: Reference, options: Mapping[str, Any], new: Sample) -> str:
    """Why a reference is not replaced by what was measured now; empty if it is.

    One odd launch shall not turn a reference of many into one that condemns nothing: the launches of a
    night that differ as much are not comparable with it, which is loud. And no night has options by hand.

    :param options: by hand, under which the old one was measured
    """
    by_hand = new.launches[-1].by_hand
    if by_hand and not options:
        return "the reference without options by hand stays; choose another place with --output"
    few = old.launches >= ENOUGH_LAUNCHES > len(new.launches) and not old.exact
    if few and (by_hand or not options):
        return f"until there are {ENOUGH_LAUNCHES}, the old reference stays"
    return ""


def of_other_options(origin: Mapping[str, Any] | None, case: Case, new: Sample) -> bool:
    """Whether the launches behind a row had set by hand what the new ones lack, so that it gives way."""
    return gives_way(options_behind(origin, case), new.launches[-1].by_hand)


def options_behind(origin: Mapping[str, Any] | None, case: Case) -> Mapping[str, Any]:
    """What was set by hand for the launches behind a row, as its provenance tells; nothing, as a rule."""
    told = (origin or {}).get("programs", {}).get(case.program)
    return (provenance.calibration_of(told, case.key) or {}).get("options", {})


def of_program(measured: Mapping[Case, Sample], program: str) -> dict[Case, Sample]:
    """The cases of one program."""
    return {case: each for case, each in measured.items() if case.program == program}


def rows_of(path: Path, measured: Mapping[Case, Sample]) -> dict[Case, Reference]:
    """The references that follow from the launches of one place.

    :raises UsageError: if simulated time does not repeat, or a value is no time.
    """
    exact = any(each.launches[-1].exact for each in measured.values())
    to_references = calibrate_exactly if exact else calibrate
    try:
        found = to_references({case: each.values for case, each in measured.items()})
    except ValueError as error:
        fix = "; calibrate --afresh leaves earlier launches out" if exact else ""
        raise UsageError(f"{path}: {error}; nothing is written{fix}") from None
    return {each.case: replace(each, unit=measured[each.case].unit) for each in found}


def refuse_method(path: Path, told: Mapping[str, Any], measured: Mapping[Case, Sample]) -> None:
    """Values of two methods cannot stand in one file.

    :raises UsageError: naming what the methods differ in.
    """
    for sample in measured.values():
        method = sample.launches[-1].facts["method"]
        for calibration in provenance.calibrations(told):
            if changed := different(calibration["method"], method):
                fix = "move the file away, or choose another place with --output"
                raise UsageError(
                    f"{path}: its references were measured with another {', '.join(changed)}; {fix}"
                )


def origin_of(
    old: Mapping[str, Any] | None, rows: Mapping[Case, Reference], measured: Mapping[Case, Sample]
) -> dict[str, Any]:
    """The provenance of a file with some of its rows measured anew: each row keeps its own."""
    programs = dict(old["programs"]) if old else {}
    for program in sorted({case.program for case in measured}):
        new = of_program(measured, program)
        stay = [case.key for case in rows if case.program == program and case not in new]
        earlier = provenance.cut(programs[program], stay, old["machine"]) if old and stay else []
        told = calibration(new, alone=not earlier)
        programs[program] = {provenance.CALIBRATIONS: [*earlier, told]}
    last = max((each.launches[-1] for each in measured.values()), key=lambda each: each.ended_utc)
    return {"machine": dict(last.machine), "programs": programs}


def calibration(measured: Mapping[Case, Sample], alone: bool) -> dict[str, Any]:
    """What is told of the launches behind new references of one program: what ran, on what, when, every value.

    Simulated time is what its reference says it is: its values are not repeated, nor its cases where they are
    all cases of the program (``alone``).
    """
    launches = {id(each): each for sample in measured.values() for each in sample.launches}
    last = max(launches.values(), key=lambda each: each.ended_utc)
    told = {
        **last.facts,
        "date_utc": last.ended_utc,
        "machine": dict(last.machine),
        "sessions": sorted({each.session for each in launches.values()}),
    }
    told["circumstances"] = {}
    for each in launches.values():
        told["circumstances"] = joint(told["circumstances"], each.circumstances)
    if last.by_hand:
        told["options"] = dict(last.by_hand)
    return told if last.exact and alone else told | {provenance.SERIES: series(measured)}


def series(measured: Mapping[Case, Sample]) -> list[dict[str, Any]]:
    """The values of the cases, those of the same launches together."""
    families: dict[tuple[int, ...], list[Sample]] = {}
    for _, sample in sorted(measured.items()):
        families.setdefault(tuple(map(id, sample.launches)), []).append(sample)
    return [
        {
            "launches": [launch(each) for each in family[0].launches],
            "headlines": {sample.case.key: sample.values for sample in family},
        }
        for family in families.values()
    ]


def launch(one: Taken) -> dict[str, Any]:
    """When and where a launch ran, and what may have changed since of the machine that started it."""
    told = {"session": one.session, "ended_utc": one.ended_utc, "hosts": list(one.hosts)}
    machine = {fact: one.machine[fact] for fact in AGEING if one.machine.get(fact)}
    told |= {"machine": machine} if machine and not one.exact else {}
    return told | ({"kernel": one.kernel} if one.kernel else {})
