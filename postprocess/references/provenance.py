"""Provenance of a reference file: the JSON file beside it."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import Any

from postprocess.base import files, strict_json
from postprocess.base.strict_json import JsonObject
from postprocess.model import measurement
from postprocess.model.case import Case
from postprocess.stats.sessions import number_sessions
from site_configs.schema.fields import SESSION_GAP_MINUTES

SUFFIX = ".provenance.json"
TEXTS = ("mpi_library", "version")  #: required of each program
FACTS = ("compiler", "source_hash", "spec")  #: optional, as text
MACHINE_FACTS = ("host", "kernel", "firmware", "cpu_model")  #: and of a machine
#: The only key of a program
CALIBRATIONS = "calibrations"
#: Optional key of a calibration: between the ends of launches of two sessions, as the site had it
SESSION_GAP = "session_gap_minutes"
SERIES = "series"  #: of a calibration: cases that were measured by the same launches, with these launches


TRANSPORTS = "transports"  #: optional key of a calibration: by what pairs of ranks talked, by class of pairs
HEADLINES = "headlines"  #: of a series: the papers' headline of each launch, by case
#: Optional key of a series: the value of each launch that is judged, by case, where it is not the headline
VALUES = "values"
LEARNED = "learned"  #: of a launch, optional: whether a night has taught it
#: Optional key of a series: the time from core to core of each launch, in seconds, by case
CORE_LATENCIES = "core_latencies"


def locate_provenance(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".tsv") + SUFFIX)


def locate_described(path: Path) -> Path:
    """Locate the reference file that a provenance file is about."""
    return path.with_name(path.name.removesuffix(SUFFIX) + ".tsv")


def read_provenance(path: Path) -> dict[str, Any]:
    """Read the provenance of a reference file that was loaded, so that it is known to be sound."""
    return json.loads(files.read_regular(locate_provenance(path)))


def find_provenance_problems(path: Path, cases: Collection[Case] = ()) -> list[str]:
    """Find what is wrong with the provenance of the reference file ``path``, one line each.

    :param cases: those of the file, each of which it must have.
    """
    sidecar = locate_provenance(path)
    try:
        origin = strict_json.parse_json(files.read_regular(sidecar).decode())
    except FileNotFoundError:
        return [f"{sidecar}: is missing; restore it or calibrate again"]
    except OSError as error:
        return [f"{sidecar}: {error.strerror}; restore it or calibrate again"]
    except json.JSONDecodeError as error:
        return [f"{sidecar}: row {error.lineno}: is not JSON: {error.msg}; correct it"]
    except ValueError as error:
        return [f"{sidecar}: {error}; correct it"]
    if not isinstance(origin, dict):
        return [f"{sidecar}: is not a JSON object; write one with date_utc, machine and so on"]
    return [f"{sidecar}: {fault}" for fault in find_provenance_faults(origin, cases)]


def find_provenance_faults(origin: Mapping[str, Any], cases: Collection[Case] = ()) -> list[str]:
    """Find what a provenance object lacks, ``key: what is wrong with it``."""
    entry = JsonObject(origin)
    found = _collect_faults(entry, [(_machine, "machine"), (_programs, "programs")])
    if found:
        return found
    programs = entry.get("programs", dict)
    for name, told in sorted(programs.items()):
        found += [f"programs: {name}: {fault}" for fault in _faults_of_program(told)]
    untold = sorted({case.program for case in cases} - set(programs))
    found += [f"programs: says nothing of {name}; calibrate again" for name in untold]
    if found:
        return found
    return [
        f"programs: {name}: {fault}"
        for name, told in sorted(programs.items())
        for fault in _find_uncovered(told, [case.key for case in cases if case.program == name])
    ]


def _faults_of_program(told: Mapping[str, Any]) -> Iterator[str]:
    """Return what is wrong with the entry of a program, beside its cases."""
    if CALIBRATIONS not in told:
        yield f"{CALIBRATIONS}: is missing; calibrate again"
        return
    some = told[CALIBRATIONS]
    if not isinstance(some, list) or not some or any(not isinstance(each, dict) for each in some):
        yield f"{CALIBRATIONS}: is not a list of objects; correct it"
        return
    for stray in sorted(set(told) - {CALIBRATIONS}):
        yield f"{stray}: stands beside {CALIBRATIONS}, where nothing reads it; move it into one of them"
    for number, each in enumerate(some, 1):
        yield from (f"calibration {number}: {fault}" for fault in _faults_of_calibration(each))


Check = Callable[[JsonObject, str], object]


def _faults_of_calibration(told: Mapping[str, Any]) -> list[str]:
    checks: list[tuple[Check, str]] = [
        (JsonObject.moment, "date_utc"),
        (_method, "method"),
        (_sessions, "sessions"),
    ]
    checks += [(JsonObject.text, key) for key in TEXTS]
    checks += [(lambda entry, key: entry.get(key, str), key) for key in FACTS if key in told]
    checks += [(_launch_machine, "machine")] if "machine" in told else []
    checks += [(_series, SERIES)] if SERIES in told else []
    checks += [(_options, "options")] if "options" in told else []
    checks += [(_circumstances, "circumstances")] if "circumstances" in told else []
    checks += [(_transports, TRANSPORTS)] if TRANSPORTS in told else []
    checks += [(JsonObject.object, "headlines")] if "headlines" in told else []
    checks += [(lambda entry, _: read_session_gap(entry), SESSION_GAP)]
    return _collect_faults(JsonObject(told), checks)


def read_session_gap(entry: JsonObject) -> int:
    """Read the minutes between sessions: those of the site, or the usual ones where it sets none.

    :raises ValueError: if they are no whole number, 1 or more
    """
    return entry.integer(SESSION_GAP, 1) if SESSION_GAP in entry.fields else SESSION_GAP_MINUTES


def list_ends(
    calibration: Mapping[str, Any], key: str, members: Sequence[int] | None = None, learned: bool = True
) -> list[str]:
    """List when the launches behind a case ended (UTC); none if the record has no times.

    :param members: numbers of the launches that count; None for all
    :param learned: whether those that nights have taught count
    """
    launches = list_case_launches(calibration, key)
    chosen = range(len(launches)) if members is None else members
    some = [launches[each] for each in chosen if each < len(launches)]
    return [each["ended_utc"] for each in some if learned or not each.get(LEARNED)]


def number_launches(calibration: Mapping[str, Any], ends: Sequence[str]) -> list[int]:
    """Find the number of the session of each launch, by when they ended."""
    return number_sessions(ends, 60.0 * read_session_gap(JsonObject(calibration)))


def _find_uncovered(told: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield cases covered by no calibration or by several, and calibrations with conflicting methods."""
    some = list_calibrations(told)
    methods = [each["method"] for each in some]
    if any(method != methods[0] for method in methods):
        yield "its calibrations were made by different methods; calibrate all of it again"
    if sum(not list_calibrated_keys(each) for each in some) > 1:
        yield "two calibrations tell of all other cases; write of one which cases it has"
    rest = any(not list_calibrated_keys(each) for each in some)
    counts = Counter(key for each in some for key in list_calibrated_keys(each))
    for key in keys:
        if counts[key] > 1:
            yield f"{key} is in {counts[key]} calibrations; leave it in one"
        if not counts[key] and not rest:
            yield f"{key} is in no calibration; calibrate it again"


def list_calibrations(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return told[CALIBRATIONS]


def find_transports(origin: Mapping[str, Any], case: Case | None = None) -> dict[str, tuple[str, ...]]:
    """Find by what pairs of ranks talked when a case was calibrated, by class of pairs, if that is told.

    What was calibrated with options set by hand tells nothing of launches without.

    :param case: None for all cases of the file, of which each may talk as any other does
    """
    if case is None:
        calibrations = [each for told in origin["programs"].values() for each in list_calibrations(told)]
    else:
        own = find_case_calibration(origin["programs"].get(case.program), case.key)
        calibrations = [own] if own else []
    found: dict[str, tuple[str, ...]] = {}
    for calibration in calibrations:
        for pairs, names in calibration.get(TRANSPORTS, {}).items() if "options" not in calibration else ():
            found[pairs] = tuple(dict.fromkeys([*found.get(pairs, ()), *names]))
    return found


def list_calibrated_keys(calibration: Mapping[str, Any]) -> set[str]:
    """List the cases that a calibration names. None: it is of all that no other one names."""
    return set(list_values(calibration))


def list_values(calibration: Mapping[str, Any]) -> dict[str, list[float]]:
    """List every judged value behind the references of a calibration by case, in the order of its launches."""
    return {
        key: list(values)
        for some in _each_series(calibration)
        for key, values in (some.get(HEADLINES, {}) | some.get(VALUES, {})).items()
    }


def find_values(calibration: Mapping[str, Any], key: str) -> Any:
    """Find every judged value behind the reference of one case, as it stands; None if none is named."""
    for some in _each_series(calibration):
        if key in some.get(HEADLINES, {}):
            return some.get(VALUES, {}).get(key, some[HEADLINES][key])
    return None


def find_headlines(calibration: Mapping[str, Any], key: str) -> Any:
    """Find the headlines of the launches behind a case, where they are not what is judged; None else."""
    for some in _each_series(calibration):
        if key in some.get(VALUES, {}):
            return some.get(HEADLINES, {}).get(key)
    return None


def _each_series(calibration: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return calibration.get(SERIES, [calibration])


def find_core_latencies(calibration: Mapping[str, Any], key: str) -> list[float | None]:
    """Find the time from core to core of each launch behind a case, in seconds; None if unknown."""
    for some in calibration.get(SERIES, ()):
        if key in some["headlines"]:
            return some.get(CORE_LATENCIES, {}).get(key, [None] * len(some["launches"]))
    return [None] * len(find_values(calibration, key) or ())


def find_case_calibration(told: Mapping[str, Any] | None, key: str) -> Mapping[str, Any] | None:
    """Find the calibration that a case belongs to, in the entry of its program; None if there is none."""
    some = list_calibrations(told) if told else []
    named = (each for each in some if find_values(each, key) is not None)
    rest = (each for each in some if not list_calibrated_keys(each))
    return next(chain(named, rest), None)


def list_case_launches(calibration: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """List when and where each launch behind a case ran; none if that is unknown."""
    some = (each for each in calibration.get(SERIES, ()) if key in each["headlines"])
    return next((each["launches"] for each in some), ())


def find_calibration_date(calibration: Mapping[str, Any], key: str) -> str:
    """Find when a case was calibrated: the end of its median launch, so that one more does not make it young.

    The lower of the middle two; the end of the last launch if the record has no others.
    """
    moments = sorted(launch["ended_utc"] for launch in list_case_launches(calibration, key))
    return moments[(len(moments) - 1) // 2] if moments else calibration["date_utc"]


def restrict_calibrations(told: Mapping[str, Any], keys: Collection[str]) -> list[dict[str, Any]]:
    """Restrict the calibrations of a program to these cases, each with what it knew."""
    some = list_calibrations(told)
    named = {key for each in some for key in list_calibrated_keys(each)}
    left = [_restrict(each, set(keys)) for each in some if list_calibrated_keys(each) & set(keys)]
    rest = [each for each in some if not list_calibrated_keys(each) and set(keys) - named]
    return [*left, *(dict(each) for each in rest)]


def _restrict(calibration: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    if SERIES not in calibration:
        return dict(calibration) | {"headlines": _select_keys(calibration["headlines"], keys)}
    by_case = (HEADLINES, VALUES, CORE_LATENCIES)
    series = [
        each | {name: _select_keys(each[name], keys) for name in by_case if name in each}
        for each in calibration[SERIES]
    ]
    return dict(calibration) | {SERIES: [each for each in series if each["headlines"]]}


def _select_keys(values: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in keys}


def _collect_faults(entry: JsonObject, checks: Sequence[tuple[Callable, str]]) -> list[str]:
    found: list[str] = []
    for check, key in checks:
        try:
            check(entry, key)
        except ValueError as error:
            found.append(f"{error}; correct it")
    return found


def encode_provenance(origin: Mapping[str, Any]) -> bytes:
    """Encode a provenance object as the text of its file, with each case and its values in one line.

    Raises ValueError if JSON cannot hold it.
    """
    try:
        return (_lines(origin, "") + "\n").encode()
    except TypeError as error:
        raise ValueError(str(error)) from None


def _lines(value: Any, margin: str) -> str:
    inner = margin + "  "
    if isinstance(value, Mapping) and value:
        rows = [f"{_lines(key, inner)}: {_lines(value[key], inner)}" for key in sorted(value)]
        return "{\n" + ",\n".join(inner + row for row in rows) + f"\n{margin}}}"
    if isinstance(value, list | tuple) and any(isinstance(each, Mapping) for each in value):
        rows = [inner + _lines(each, inner) for each in value]
        return "[\n" + ",\n".join(rows) + f"\n{margin}]"
    return json.dumps(value, allow_nan=False, sort_keys=True)


def _machine(entry: JsonObject, key: str) -> None:
    if not entry.get(key, str, dict):
        raise ValueError(f"{key}: is empty")
    _launch_machine(entry, key)


def _launch_machine(entry: JsonObject, key: str) -> None:
    """Check the entry of a machine, in words or by its facts."""
    if isinstance(entry.get(key, str, dict), dict):
        machine = entry.object(key)
        for fact in MACHINE_FACTS:
            if fact in machine.fields:
                machine.get(fact, str)


def _programs(entry: JsonObject, key: str) -> None:
    if key not in entry.fields:
        raise ValueError(f"{key}: is missing; move the file away and calibrate")
    programs = entry.get(key, dict)
    if not programs or any(not isinstance(told, dict) for told in programs.values()):
        raise ValueError(f"{key}: does not tell of each program how it was measured")


def _method(entry: JsonObject, key: str) -> None:
    if not entry.get(key, dict):
        raise ValueError(f"{key}: is empty")


def _options(entry: JsonObject, key: str) -> None:
    """Check what was set by hand: variables by name, of options and of the shell."""
    options = entry.object(key)
    for name in ("set_env", "shell"):
        inner = options.object(name) if name in options.fields else JsonObject({})
        for variable in inner.fields:
            inner.get(variable, str)


def _circumstances(entry: JsonObject, key: str) -> None:
    circumstances = entry.object(key)
    if "binding" in circumstances.fields:
        circumstances.object("binding")


def _transports(entry: JsonObject, key: str) -> None:
    transports = entry.object(key)
    for pairs in transports.fields:
        transports.texts(pairs)


def _sessions(entry: JsonObject, key: str) -> None:
    if not entry.texts(key):
        raise ValueError(f"{key}: is empty")


def _series(entry: JsonObject, key: str) -> None:
    for some in entry.objects(key):
        launches = some.objects("launches")
        for launch in launches:
            launch.text("session")
            launch.moment("ended_utc")
            launch.texts("hosts")
            for check, fact in (
                (_launch_machine, "machine"),
                (JsonObject.text, "kernel"),
                (JsonObject.flag, LEARNED),
            ):
                if fact in launch.fields:
                    check(launch, fact)
        headlines = some.object(HEADLINES)
        values = some.object(VALUES) if VALUES in some.fields else JsonObject({})
        for told in (headlines, values):
            for case in told.fields:
                told.series(case, len(launches))
        places = some.object(CORE_LATENCIES) if CORE_LATENCIES in some.fields else JsonObject({})
        for case in places.fields:
            places.sparse_series(case, len(launches), measurement.CORE_LATENCIES)
        for name, told in ((VALUES, values), (CORE_LATENCIES, places)):
            if stray := sorted(told.fields.keys() - headlines.fields.keys()):
                raise ValueError(f"{key}.{name}: {stray[0]} has no headlines")
