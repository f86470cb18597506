"""The provenance of a reference file: the JSON file beside it."""

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
FACTS = ("compiler", "source_hash", "spec")  #: optional texts
MACHINE_FACTS = ("host", "kernel", "firmware", "cpu_model")  #: optional texts of a machine
#: The only key of a program
CALIBRATIONS = "calibrations"
#: Optional key of a calibration: minutes between the ends of launches that separate two sessions, from the site
SESSION_GAP = "session_gap_minutes"
SERIES = "series"  #: key of a calibration: cases that were measured by the same launches, with these launches


TRANSPORTS = "transports"  #: optional key of a calibration: transports between ranks, by class of pairs
HEADLINES = "headlines"  #: key of a series: the papers' headline of each launch, by case
#: Optional key of a series: the judged value of each launch, by case, if it is not the headline
VALUES = "values"
LEARNED = "learned"  #: optional key of a launch: whether a night added it
#: Optional key of a series: the core-to-core time of each launch, in seconds, by case
CORE_LATENCIES = "core_latencies"


def locate_provenance(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".tsv") + SUFFIX)


def locate_described(path: Path) -> Path:
    """Return the reference file that a provenance file describes."""
    return path.with_name(path.name.removesuffix(SUFFIX) + ".tsv")


def read_provenance(path: Path) -> dict[str, Any]:
    """Read the provenance of a reference file that was loaded, and is therefore sound."""
    return json.loads(files.read_regular(locate_provenance(path)))


def find_provenance_problems(path: Path, cases: Collection[Case] = ()) -> list[str]:
    """Find what is wrong with the provenance of the reference file ``path``, one line each.

    :param cases: those of the file, all of which it must have.
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
    faults = _collect_faults(entry, [(_machine, "machine"), (_programs, "programs")])
    if faults:
        return faults
    programs = entry.get("programs", dict)
    for name, program in sorted(programs.items()):
        faults += [f"programs: {name}: {fault}" for fault in _faults_of_program(program)]
    untold = sorted({case.program for case in cases} - set(programs))
    faults += [f"programs: says nothing of {name}; calibrate again" for name in untold]
    if faults:
        return faults
    return [
        f"programs: {name}: {fault}"
        for name, program in sorted(programs.items())
        for fault in _find_uncovered(program, [case.key for case in cases if case.program == name])
    ]


def _faults_of_program(told: Mapping[str, Any]) -> Iterator[str]:
    """Yield the faults in the entry of a program, apart from its cases."""
    if CALIBRATIONS not in told:
        yield f"{CALIBRATIONS}: is missing; calibrate again"
        return
    calibrations = told[CALIBRATIONS]
    if (
        not isinstance(calibrations, list)
        or not calibrations
        or any(not isinstance(calibration, dict) for calibration in calibrations)
    ):
        yield f"{CALIBRATIONS}: is not a list of objects; correct it"
        return
    for stray in sorted(set(told) - {CALIBRATIONS}):
        yield f"{stray}: stands beside {CALIBRATIONS}, where nothing reads it; move it into one of them"
    for number, calibration in enumerate(calibrations, 1):
        yield from (f"calibration {number}: {fault}" for fault in _faults_of_calibration(calibration))


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
    """Read the minutes between sessions: those of the site, or the default if it sets none.

    :raises ValueError: if they are not a whole number of at least 1
    """
    return entry.integer(SESSION_GAP, 1) if SESSION_GAP in entry.fields else SESSION_GAP_MINUTES


def list_ends(
    calibration: Mapping[str, Any], key: str, members: Sequence[int] | None = None, learned: bool = True
) -> list[str]:
    """List when the launches behind a case ended (UTC); empty if the record has no times.

    :param members: numbers of the launches that count; None for all
    :param learned: whether launches that nights added count
    """
    launches = list_case_launches(calibration, key)
    chosen = range(len(launches)) if members is None else members
    counted = [launches[number] for number in chosen if number < len(launches)]
    return [launch["ended_utc"] for launch in counted if learned or not launch.get(LEARNED)]


def number_launches(calibration: Mapping[str, Any], ends: Sequence[str]) -> list[int]:
    """Find the number of each launch's session, from the times at which launches ended."""
    return number_sessions(ends, 60.0 * read_session_gap(JsonObject(calibration)))


def _find_uncovered(told: Mapping[str, Any], keys: Sequence[str]) -> Iterator[str]:
    """Yield cases covered by no calibration or by several, and calibrations with conflicting methods."""
    calibrations = list_calibrations(told)
    methods = [calibration["method"] for calibration in calibrations]
    if any(method != methods[0] for method in methods):
        yield "its calibrations were made by different methods; calibrate all of it again"
    if sum(not list_calibrated_keys(calibration) for calibration in calibrations) > 1:
        yield "two calibrations stand for all other cases; list the cases of one of them"
    rest = any(not list_calibrated_keys(calibration) for calibration in calibrations)
    counts = Counter(key for calibration in calibrations for key in list_calibrated_keys(calibration))
    for key in keys:
        if counts[key] > 1:
            yield f"{key} is in {counts[key]} calibrations; leave it in one"
        if not counts[key] and not rest:
            yield f"{key} is in no calibration; calibrate it again"


def list_calibrations(told: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return told[CALIBRATIONS]


def find_transports(origin: Mapping[str, Any], case: Case | None = None) -> dict[str, tuple[str, ...]]:
    """Find the transports between ranks when a case was calibrated, by class of pairs, if recorded.

    Calibrations with options set by hand are left out: they say nothing about launches without them.

    :param case: None for all cases of the file, whose transports are then interchangeable
    """
    if case is None:
        calibrations = [
            calibration for program in origin["programs"].values() for calibration in list_calibrations(program)
        ]
    else:
        case_calibration = find_case_calibration(origin["programs"].get(case.program), case.key)
        calibrations = [case_calibration] if case_calibration else []
    transports: dict[str, tuple[str, ...]] = {}
    for calibration in calibrations:
        for pairs, names in calibration.get(TRANSPORTS, {}).items() if "options" not in calibration else ():
            transports[pairs] = tuple(dict.fromkeys([*transports.get(pairs, ()), *names]))
    return transports


def list_calibrated_keys(calibration: Mapping[str, Any]) -> set[str]:
    """List the cases that a calibration names; one that names none covers all cases not named elsewhere."""
    return set(list_values(calibration))


def list_values(calibration: Mapping[str, Any]) -> dict[str, list[float]]:
    """Return the judged values behind the references of a calibration by case, in the order of its launches."""
    return {
        key: list(values)
        for series in _each_series(calibration)
        for key, values in (series.get(HEADLINES, {}) | series.get(VALUES, {})).items()
    }


def find_values(calibration: Mapping[str, Any], key: str) -> Any:
    """Return the judged values behind the reference of one case, unchecked; None if there are none."""
    for series in _each_series(calibration):
        if key in series.get(HEADLINES, {}):
            return series.get(VALUES, {}).get(key, series[HEADLINES][key])
    return None


def find_headlines(calibration: Mapping[str, Any], key: str) -> Any:
    """Return the headlines of the launches behind a case if they are not the judged values; else None."""
    for series in _each_series(calibration):
        if key in series.get(VALUES, {}):
            return series.get(HEADLINES, {}).get(key)
    return None


def _each_series(calibration: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    return calibration.get(SERIES, [calibration])


def find_core_latencies(calibration: Mapping[str, Any], key: str) -> list[float | None]:
    """Return the core-to-core time of each launch behind a case, in seconds, or None if unknown."""
    for series in calibration.get(SERIES, ()):
        if key in series["headlines"]:
            return series.get(CORE_LATENCIES, {}).get(key, [None] * len(series["launches"]))
    return [None] * len(find_values(calibration, key) or ())


def find_case_calibration(told: Mapping[str, Any] | None, key: str) -> Mapping[str, Any] | None:
    """Find the calibration that a case belongs to, in the entry of its program; None if there is none."""
    calibrations = list_calibrations(told) if told else []
    named = (calibration for calibration in calibrations if find_values(calibration, key) is not None)
    rest = (calibration for calibration in calibrations if not list_calibrated_keys(calibration))
    return next(chain(named, rest), None)


def list_case_launches(calibration: Mapping[str, Any], key: str) -> Sequence[Mapping[str, Any]]:
    """Return when and where the launches behind a case ran; empty if unknown."""
    matching = (series for series in calibration.get(SERIES, ()) if key in series["headlines"])
    return next((series["launches"] for series in matching), ())


def find_calibration_date(calibration: Mapping[str, Any], key: str) -> str:
    """Find when a case was calibrated: the end of its median launch, so that one more does not rejuvenate it.

    It is the lower of the middle two; the end of the last launch if the record has no others.
    """
    moments = sorted(launch["ended_utc"] for launch in list_case_launches(calibration, key))
    return moments[(len(moments) - 1) // 2] if moments else calibration["date_utc"]


def restrict_calibrations(told: Mapping[str, Any], keys: Collection[str]) -> list[dict[str, Any]]:
    """Restrict the calibrations of a program to these cases."""
    calibrations = list_calibrations(told)
    named = {key for calibration in calibrations for key in list_calibrated_keys(calibration)}
    left = [
        _restrict(calibration, set(keys))
        for calibration in calibrations
        if list_calibrated_keys(calibration) & set(keys)
    ]
    rest = [
        calibration
        for calibration in calibrations
        if not list_calibrated_keys(calibration) and set(keys) - named
    ]
    return [*left, *(dict(calibration) for calibration in rest)]


def _restrict(calibration: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    if SERIES not in calibration:
        return dict(calibration) | {"headlines": _select_keys(calibration["headlines"], keys)}
    by_case = (HEADLINES, VALUES, CORE_LATENCIES)
    series = [
        entry | {name: _select_keys(entry[name], keys) for name in by_case if name in entry}
        for entry in calibration[SERIES]
    ]
    return dict(calibration) | {SERIES: [entry for entry in series if entry["headlines"]]}


def _select_keys(values: Mapping[str, Any], keys: set[str]) -> dict[str, Any]:
    return {key: value for key, value in values.items() if key in keys}


def _collect_faults(entry: JsonObject, checks: Sequence[tuple[Callable, str]]) -> list[str]:
    faults: list[str] = []
    for check, key in checks:
        try:
            check(entry, key)
        except ValueError as error:
            faults.append(f"{error}; correct it")
    return faults


def encode_provenance(origin: Mapping[str, Any]) -> bytes:
    """Encode a provenance object as the text of its file, with each case and its values on one line.

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
    if isinstance(value, list | tuple) and any(isinstance(entry, Mapping) for entry in value):
        rows = [inner + _lines(entry, inner) for entry in value]
        return "[\n" + ",\n".join(rows) + f"\n{margin}]"
    return json.dumps(value, allow_nan=False, sort_keys=True)


def _machine(entry: JsonObject, key: str) -> None:
    if not entry.get(key, str, dict):
        raise ValueError(f"{key}: is empty")
    _launch_machine(entry, key)


def _launch_machine(entry: JsonObject, key: str) -> None:
    """Check the entry of a machine, which is a text or a set of facts."""
    if isinstance(entry.get(key, str, dict), dict):
        machine = entry.object(key)
        for fact in MACHINE_FACTS:
            if fact in machine.fields:
                machine.get(fact, str)


def _programs(entry: JsonObject, key: str) -> None:
    if key not in entry.fields:
        raise ValueError(f"{key}: is missing; move the file away and calibrate")
    programs = entry.get(key, dict)
    if not programs or any(not isinstance(program, dict) for program in programs.values()):
        raise ValueError(f"{key}: does not record for each program how it was measured")


def _method(entry: JsonObject, key: str) -> None:
    if not entry.get(key, dict):
        raise ValueError(f"{key}: is empty")


def _options(entry: JsonObject, key: str) -> None:
    """Check what was set by hand: variables by name, from options and from the shell."""
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
    for series in entry.objects(key):
        launches = series.objects("launches")
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
        headlines = series.object(HEADLINES)
        values = series.object(VALUES) if VALUES in series.fields else JsonObject({})
        for by_case in (headlines, values):
            for case in by_case.fields:
                by_case.series(case, len(launches))
        places = series.object(CORE_LATENCIES) if CORE_LATENCIES in series.fields else JsonObject({})
        for case in places.fields:
            places.sparse_series(case, len(launches), measurement.CORE_LATENCIES)
        for name, optional in ((VALUES, values), (CORE_LATENCIES, places)):
            if stray := sorted(optional.fields.keys() - headlines.fields.keys()):
                raise ValueError(f"{key}.{name}: {stray[0]} has no headlines")
