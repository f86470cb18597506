"""Every file that is read, damaged at random: a reader gives a result of its types, or one line of our own.

The same 20 damages of each file in every run; 2000 others in each with ``PLUMBLINE_THOROUGH=1``.
"""

import json
import math
from collections import abc
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, is_dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import HealthCheck, given, settings

from postprocess.analyses.alarms import FILE, append_night, read_alarm_log, summarise_night_alarms
from postprocess.base.archive import pack_folder, unpack_archive
from postprocess.base.errors import UsageError
from postprocess.base.records import parse_record
from postprocess.base.signature import MANIFEST, compare_manifest, format_manifest
from postprocess.calibration import ledger
from postprocess.calibration.update import update_references
from postprocess.extensions.procurement.commitments import (
    Commitment,
    read_commitments,
    take_form,
    write_commitments,
)
from postprocess.extensions.procurement.form_rows import build_form
from postprocess.extensions.procurement.offer import COMMITMENTS, PASSES, RULES, TELL, open_offer, read_told
from postprocess.extensions.procurement.rules.rules import hash_rules, lint_rules
from postprocess.extensions.procurement.run_rules import check_offer
from postprocess.extensions.procurement.spreadsheet import build_xlsx, format_csv, read_form
from postprocess.extensions.selftest import data as selftest
from postprocess.features.compare import data as compare_data
from postprocess.features.compare import decision
from postprocess.features.compare.facts import SideFacts, read_facts
from postprocess.features.compare.judge import judge_comparison
from postprocess.judging.outcome import read_exit_code
from postprocess.model.plan import read_launch_file, write_launch
from postprocess.model.verdict import RecordError
from postprocess.parsers.imb import parse_imb
from postprocess.parsers.mpicost import read_launch
from postprocess.parsers.osu import parse_osu
from postprocess.parsers.osu_imb_launch import read_witness
from postprocess.parsers.reframe_report import read_report
from postprocess.references.catalog import read_provenance
from postprocess.references.decisions import COLUMNS, parse_expected_file
from postprocess.references.reference_file import PATH, load_references, load_session_priors
from postprocess.results.launch_costs import read_elapsed_seconds
from postprocess.results.query import read_covered_sessions, read_headlines, read_intact_index
from postprocess.results.store import read_session, write_frame
from postprocess.results.summary import load_summary
from postprocess.session.nightly.imported import MAINTAINER, read_imported_tests
from site_configs.mpi.family import Mpi
from site_configs.mpi.inventory import read_stored_inventory
from site_configs.schedulers.base import ENDED, Ended, Ending, read_ended, write_ended
from site_configs.schema import reframe_request
from site_configs.validation.reading import parse_reading
from spack_envs import installation
from spack_envs.layout import SpackEnvironmentError, read_locked_hash
from spack_envs.mirror import manifest
from tests.support.damage import damaged
from tests.support.factories import benchmark, launch, record
from tests.support.factories import ledger as ledger_samples
from tests.support.factories import report as report_samples
from tests.support.factories.mirror import make_mirror
from tests.support.factories.offer import OFFICIAL, RULES_TEXT, TOLD_TEXT, make_offer
from tests.support.factories.store import Site, session_name
from tests.support.paths import DATA
from tests.support.thorough import THOROUGH, rounds

OUTPUTS = DATA / "outputs"
NIGHT = session_name(0)
STORED = Site(cases=4)
ENVIRONMENT = "mpich-5_0_2"

Make = Callable[[Path], Path]


@dataclass(frozen=True)
class Reader:
    """A file of a kind, and what reads it."""

    make: Make  #: in an empty folder; returns the file
    read: Callable[[Path], object]
    refuses: tuple[type[Exception], ...] = (UsageError,)


def night(*parts: str) -> Make:
    """A file of a work directory with a calibration and a night."""

    def make(folder: Path) -> Path:
        one = ledger_samples.launch(session=NIGHT)
        ledger.append_launches(folder, NIGHT, [one])
        update_references(folder / "references", [one])
        found = report_samples.healthy_night(report_samples.few_cases())
        found.write(folder / "sessions" / NIGHT)
        write_frame(folder / "store" / f"{NIGHT}.parquet", STORED.night(0))
        results = found.results
        append_night(folder / FILE, summarise_night_alarms(NIGHT, "2026-11-22T18:04:31Z", "local", results))
        return folder.joinpath(*parts)

    return make


def text(name: str, content: str | bytes) -> Make:
    def make(folder: Path) -> Path:
        (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
        return folder / name

    return make


def made(write: Callable[[Path], object], *parts: str) -> Make:
    """What a writer of ours makes in the folder."""

    def make(folder: Path) -> Path:
        write(folder)
        return folder.joinpath(*parts)

    return make


def plan(folder: Path) -> Path:
    """Of a job of IMB, which has all there is in a plan."""
    write_launch(folder, benchmark.start("imb", (benchmark.PINGPONG, benchmark.BARRIER)))
    return next(folder.glob("plan/*.json"))


def witness(folder: Path) -> Path:
    return record.write(folder / "w.jsonl", benchmark.witnessed())


def request(folder: Path) -> None:
    asked = reframe_request.ReframeRequest(
        choice={"routine": ["bcast"], "trials": 5},
        set_env={ENVIRONMENT: {"A": "b"}},
        shell={"FI_PROVIDER": "tcp"},
        references=["references"],
        spack="spack",
    )
    reframe_request.write_request(folder, asked)


def selftest_nights(folder: Path) -> None:
    header = selftest.SelftestHeader("local", 1, 2, 3, ("delay",), (launch.CASES[0].key,), "own")
    words = (launch.CASES[0].key, ENVIRONMENT, "bcast", "delay", "bcast", True, False)
    row = selftest.CaseNight(*words, "pass", "pass", 1e-6, None, 1e-6, 2e-6, 0.1, 3.0, 20)
    selftest.write_selftest_header(folder / "nights.jsonl", header)
    for number in (1, 2):
        done = selftest.FinishedNight(number, "a session", 1.5, ("a note",), (row,))
        selftest.append_selftest_night(folder / "nights.jsonl", done)


def report(folder: Path) -> Path:
    case = {"unique_name": "luecke_0", "system": "local", "partition": "cpu", "result": "fail",
            "environ": ENVIRONMENT, "fail_phase": "run", "fail_reason": "why", "fixture": False,
            "stagedir": "stage", "time_run": 2.5, "dependencies_actual": [["a", "b", "c"]],
            "perfvalues": {"local:cpu:bcast_8": [1e-6, 1e-6, None, 0.5, "s", "pass"]},
            "tags": ["a"]}  # fmt: skip
    return text("report.json", json.dumps({"runs": [{"testcases": [case]}]}))(folder)


def index(folder: Path) -> Path:
    """Made by the first question to a store."""
    night()(folder)
    read_headlines(folder / "store")
    return next((folder / "store").glob("*/*.parquet"))


FACTS = {"mpi_library": "MPICH Version: 5.0.2", "mpi_standard": "5.0",
         "linked_as": "/opt/lib/libmpi.so.12",
         "objects": [{"path": "/usr/lib/libc.so.6", "id": "93ac61"}], "environment": {"UCX_TLS": "sm"},
         "variables": [{"name": "A", "verbosity": "user all", "scope": "all", "value": "1"}]}  # fmt: skip
KEY = "cpu/mpicost/bcast/evict-dissemination/2x2/8"
WAIVER = decision.CaseWaiver("cpu/mpicost/*", "why", "2027-03-31", (KEY,), ("slower",), 1.5, "")


def comparison(folder: Path) -> Path:
    """With all kinds of lines."""
    sides = [compare_data.ComparedSide(name, f"{name}-1") for name in ("a", "b")]
    shared = (("MPI library", "4.3.2", "5.0.2"),)
    header = compare_data.ComparisonHeader(
        *("local", *sides, {}, (0.05, 0.05, 0.05), None, False, 7, shared),
        *("2026-11-23T00:00:00Z", ("./plumbline", "compare")),
    )
    value = compare_data.CaseValue(1e-6, "s", rerun="./plumbline run")
    measured = compare_data.LaunchValues("l", {"nodes": "n1"}, {KEY: value})
    path = folder / compare_data.FILE
    compare_data.append_record(path, header)
    compare_data.append_record(path, compare_data.PlannedLooks([6, 10]))
    compare_data.append_record(path, compare_data.ComparisonPass(1, 0, "old", "s", 1.0, (measured,)))
    noise = {"old": compare_data.SideNoise(0.1, 3.0, "table")}
    compare_data.append_record(path, compare_data.KnownNoise({KEY: noise}))
    told = compare_data.ReportedFacts("old", parse_record(FACTS, SideFacts))
    compare_data.append_record(path, told)
    return path


def imported(folder: Path) -> Path:
    """A report of a site's own ReFrame, of a test that was left out, and so has no files."""
    path = report(folder)
    told = json.loads(path.read_text())
    told["runs"][0]["testcases"][0] |= {"maintainers": [MAINTAINER], "stagedir": "", "outputdir": ""}
    path.write_text(json.dumps(told))
    return path


def judged(path: Path) -> object:
    """With what follows from it: numbers of the right type may still be none that can be worked with."""
    found = compare_data.read_comparison(path)
    judge_comparison(found)
    return found


def offer(folder: Path) -> Path:
    return make_offer(folder, factors=(1.0,))


def within_offer(pattern: str) -> Make:
    """A file of the one session that an offer has."""

    def make(folder: Path) -> Path:
        (found,) = offer(folder).glob(f"sessions/*/{pattern}")
        return found

    return make


def checked(path: Path) -> object:
    """The passes of an offer, with all that is checked of them."""
    found = open_offer(next(parent for parent in path.parents if (parent / PASSES).exists()))
    check_offer(found, OFFICIAL)
    return found.stored


def form(name: str) -> Make:
    """The form of an offer, in which nothing is typed."""

    def make(folder: Path) -> Path:
        rows = build_form(open_offer(offer(folder)))
        if name.endswith(".csv"):
            (folder / name).write_text(format_csv(rows, {}))
        else:
            (folder / name).write_bytes(build_xlsx("a title", "abc", rows, {}))
        return folder / name

    return make


def typed(path: Path) -> object:
    """What was typed into a form, taken as commitments."""
    rows = build_form(open_offer(path.parent))
    found, _ = take_form(rows, read_form(path), path.name)
    write_commitments(path.parent, "abc", found)
    return read_commitments(path.parent)


def commitments(folder: Path) -> None:
    rows = [Commitment(row.key.key, 1e-5) for row in build_form(open_offer(offer(folder)))]
    write_commitments(folder, hash_rules(folder / RULES), rows)


def archive(folder: Path) -> Path:
    for name in ("a", "b"):
        text(name, f"this is {name}\n")(folder)
    pack_folder(folder, ["a", "b"], folder / "offer.tar")
    return folder / "offer.tar"


def unpacked(path: Path) -> None:
    """Nothing comes out beside the folder, whatever it holds."""
    before = set(path.parent.iterdir())
    with TemporaryDirectory(dir=path.parent) as scratch:
        unpack_archive(path, Path(scratch))
    assert set(path.parent.iterdir()) == before


def sealed(folder: Path) -> Path:
    text("a", "this is a\n")(folder)
    return text(MANIFEST, format_manifest(folder))(folder)


MPI = Mpi(ENVIRONMENT, "mpich", "5.0.2", "MPICH", "wheel", "/opt", "/opt/mpicc", "/opt/mpiexec")
INVENTORY = {"schema": 2, "machine": {}, "files": {ENVIRONMENT: [["/opt/mpicc", 7]]}, "mpis": [asdict(MPI)],
             "unusable": [{"mpicc": "a", "origin": "b", "problem": "c"}], "imb": []}  # fmt: skip
BUILT = installation.BuiltBinary(ENVIRONMENT, "mpicost", "/opt/mpicost", "mpicost@0.1.0/abc")

READING = {"faults": [{"line": 3, "text": "a fault"}], "lines": {"site x": 3}}
TSV, PROVENANCE = (f"references/local/cpu/{ENVIRONMENT}{each}" for each in (".tsv", ".provenance.json"))
ROW = ("cpu", "mpich*", "mpicost", "bcast", "*", "evict", "*", "2", "*", "8")


def references(path: Path) -> object:
    """With what is told of them."""
    table = path.with_name(f"{ENVIRONMENT}.tsv")
    found = load_references(table, "local", "cpu", ENVIRONMENT)
    return found, read_provenance(table)


def expected(path: Path) -> object:
    found, problems = parse_expected_file(path)
    assert not any("\n" in line for line in problems)
    return found


READERS = {
    "references": Reader(night(TSV), references),
    "provenance": Reader(night(PROVENANCE), references),
    "ledger": Reader(night("calibrations", f"{NIGHT}.json"), ledger.read_ledger_file),
    "calibration header": Reader(
        made(lambda folder: ledger.open_calibration(folder, {"a": {"b": "c"}}, False, True, {}), ledger.OPENED),
        ledger.read_calibration_header,
    ),
    "summary": Reader(night("sessions", NIGHT, "summary.json"), load_summary),
    "plan": Reader(plan, read_launch_file),
    "store": Reader(night("store", f"{NIGHT}.parquet"), read_session),
    "index of the store": Reader(
        index, lambda path: (read_covered_sessions(read_intact_index(path)),)
    ),
    "log of alarms": Reader(night(FILE), read_alarm_log),
    "self-test": Reader(made(selftest_nights, "nights.jsonl"), selftest.read_selftest),
    "request": Reader(
        made(request, reframe_request.FILE),
        lambda path: reframe_request.read_request.__wrapped__(path.parent),
        (ValueError,),
    ),
    "expected failures": Reader(
        text("expected.tsv", "\t".join(COLUMNS) + "\n" + "\t".join(
            (*ROW, "regressed", "2", "a bad cable since a week", "", "2026-12-24")) + "\n"),
        expected,
    ),
    "spreads of sessions": Reader(text("a.tsv", PATH.read_bytes()), load_session_priors.__wrapped__),
    "comparison": Reader(comparison, judged),
    "rules of a procurement": Reader(text("rules.toml", RULES_TEXT), lint_rules),
    "passes of an offer": Reader(made(offer, PASSES), checked),
    "records of an offer": Reader(within_offer("raw/*mpicost*.jsonl"), checked),
    "witness of an offer": Reader(within_offer("raw/osu*.witness.jsonl"), checked),
    "output of an offer": Reader(within_offer("raw/osu*.txt"), checked),
    "plan of an offer": Reader(within_offer("plan/osu*.json"), checked),
    "moments of an offer": Reader(within_offer("raw/osu*.times"), checked),
    "what a bidder states": Reader(
        text(TELL, TOLD_TEXT + '[[patch]]\nprogram = "osu"\nfile = "a.patch"\ntext = "why"\n'),
        lambda path: read_told(path.parent),
    ),
    "commitments": Reader(
        made(commitments, COMMITMENTS), lambda path: read_commitments(path.parent)
    ),
    "form as CSV": Reader(form("offer.csv"), typed),
    "form as spreadsheet": Reader(form("offer.xlsx"), typed),
    "archive": Reader(archive, unpacked),
    "manifest of a seal": Reader(sealed, lambda path: tuple(compare_manifest(path.parent))),
    "facts of an MPI": Reader(text("facts.json", json.dumps(FACTS)), read_facts),
    "decision": Reader(
        made(lambda folder: decision.write_decision(folder, decision.SignedDecision(
            decision.ACCEPTED, "a to b", "", (WAIVER,), "2026-11-23T00:00:00Z")), decision.FILE),
        lambda path: decision.read_decision(path.parent),
    ),
    "imported report": Reader(imported, read_imported_tests),
    "mpicost's records": Reader(
        made(lambda folder: record.write(folder / "a.jsonl", record.launch()), "a.jsonl"),
        read_launch,
        (RecordError,),
    ),
    "end of mpicost's records": Reader(
        made(lambda folder: record.write(folder / "a.jsonl", record.launch()), "a.jsonl"),
        read_elapsed_seconds,
    ),
    "witness": Reader(witness, read_witness, (RecordError,)),
    "OSU": Reader(
        text("osu.txt", (OUTPUTS / "osu" / "mpich-allreduce_T_all_f.txt").read_bytes()),
        lambda path: parse_osu(path.read_bytes().decode(errors="backslashreplace")),
        (RecordError,),
    ),
    "IMB": Reader(
        text("imb.txt", (OUTPUTS / "imb" / "mpich-mpi1_multi0.txt").read_bytes()),
        lambda path: parse_imb(path.read_bytes().decode(errors="backslashreplace")),
        (RecordError,),
    ),
    "exit code": Reader(text("a.exit", "139\n"), read_exit_code),
    "report of ReFrame": Reader(report, read_report),
    "end of a job": Reader(
        made(lambda folder: write_ended(folder, Ended(Ending.TIMED_OUT, "why")), ENDED),
        lambda path: read_ended(path.parent),
    ),
    "reading of a site": Reader(
        text("reading.json", json.dumps(READING)),
        lambda path: parse_reading(path.read_text(errors="replace")),
        (ValueError,),
    ),
    "inventory": Reader(text("inventory.json", json.dumps(INVENTORY)), read_stored_inventory),
    "program": Reader(
        made(lambda folder: installation.write_program(folder, BUILT),
             "programs", ENVIRONMENT, "mpicost.json"),
        lambda path: installation.read_program(path.parents[2], ENVIRONMENT, "mpicost"),
    ),
    "installation": Reader(
        made(lambda folder: installation.write_stamp(
            installation.Installation("osu", "/opt/osu", "osu@7.4/abc", str(folder), "key")),
            ".plumbline", "osu.json"),
        lambda path: installation.read_stamp(path.parents[1], "osu"),
    ),
    "failure of a build": Reader(
        made(lambda folder: installation.write_failure(folder, SpackEnvironmentError("why")),
             installation.FAILURE),
        lambda path: installation.read_failure(path.parent),
    ),
    "solution of Spack": Reader(
        text("spack.lock", json.dumps({"roots": [{"hash": "abc", "spec": "mpicost@0.1.0"}]})),
        lambda path: read_locked_hash(path.parent),
        (SpackEnvironmentError,),
    ),
    "mirror": Reader(
        made(make_mirror, manifest.NAME), lambda path: manifest.read_manifest(path.parent)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", READERS)
def test_a_damaged_file_is_read_or_refused_in_one_line(name: str, tmp_path: Path):
    reader = READERS[name]
    path = reader.make(tmp_path)
    whole = path.read_bytes()
    reader.read(path)

    @settings(
        max_examples=rounds(20, 2000),
        derandomize=not THOROUGH,
        suppress_health_check=[HealthCheck.too_slow],  # the machine may be
    )
    @given(damaged(whole))
    def check(content: bytes) -> None:
        path.write_bytes(content)
        try:
            found = reader.read(path)
        except reader.refuses as error:
            assert str(error) and "\n" not in str(error)
        else:
            check_types(found)

    check()


def check_types(found: object) -> None:
    """Every value in what was read is of the type that its data class says."""
    if is_dataclass(found):
        hints = get_type_hints(type(found))
        for field in fields(found):
            value = getattr(found, field.name)
            assert fits(value, hints[field.name]), (type(found), field.name, value)
            check_types(value)
    elif isinstance(found, Mapping):
        check_types((*found.keys(), *found.values()))
    elif isinstance(found, list | tuple | set | frozenset):
        for field in found:
            check_types(field)


def fits(value: object, kind: Any) -> bool:
    """Whether a value is of a type as it stands in a data class; true of a type that is not known here."""
    origin, inner = get_origin(kind), get_args(kind)
    if origin in (Union, UnionType):
        return any(fits(value, each) for each in inner)
    if kind is float:
        return type(value) in (int, float) and math.isfinite(value)
    if kind in (int, str, bool, type(None)):
        return type(value) is kind
    if origin is tuple and inner[1:] != (...,):
        return isinstance(value, tuple) and len(value) == len(inner)
    if origin in (tuple, list, frozenset):
        return isinstance(value, origin) and all(fits(each, inner[0]) for each in value)
    if origin in (dict, abc.Mapping):
        keys, values = inner
        return isinstance(value, Mapping) and all(
            fits(key, keys) and fits(each, values) for key, each in value.items()
        )
    return origin is not None or kind is Any or isinstance(value, kind)
