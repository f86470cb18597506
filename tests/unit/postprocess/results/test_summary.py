"""The summary file: read back as it was written, and refused when it cannot be trusted."""

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import FinishedLaunch, LaunchOutcome
from postprocess.model.verdict import Verdict
from postprocess.references.catalog import ReferenceCatalog
from postprocess.results.summary import BuiltProgram, environments, load_summary, parse_summary, programs
from spack_envs.installation import BuiltBinary
from tests.support.factories import report as samples
from tests.support.factories import size as sizes
from tests.support.factories.launch import CASES, book_of, finished, finished_with_wrong_data
from tests.support.factories.setup import make_mpi
from tests.support.factories.summary import leave_summary, summarise
from tests.support.faults import Declared, plants


@pytest.fixture
def document():
    return json.loads(json.dumps(samples.bad_night(samples.few_cases()).document()))


def test_figures_and_units_come_back_as_they_were_written(tmp_path):
    night = sizes.three_programs()
    summary = load_summary(night.write(tmp_path) / "summary.json")
    assert list(summary.results) == night.results
    assert {result.unit for result in summary.results} == {"s", "MB/s"}
    key = "mpich-5.0.2:osu:bw:warm-barrier:2x2:8"
    (found,) = [each for each in summary.results if each.case.key.endswith(key)]
    assert set(found.figures) == {"Iterations", "Min", "Max"}


def test_a_cause_comes_back_whatever_the_reason_says():
    night = samples.bad_night(samples.few_cases())
    told = replace(night.results[0], reason="another sentence", cause="cpu: everything 7% slower")
    document = replace(night, results=[told, *night.results[1:]]).document()
    assert parse_summary(json.loads(json.dumps(document))).results[0] == told


def same_case_twice(document):
    document["cases"].append(document["cases"][0])
    document["counts"][document["cases"][0]["verdict"]] += 1


@plants("files", "a key lost, beyond what it may be or against another one, in 11 ways",
        "`summary.json`", "", 2, "; run the session again")  # fmt: skip
@pytest.mark.parametrize(
    ("damage", "named"),
    [
        (lambda d: d.update(schema=4), "schema: is 4, and this Plumbline reads 5"),
        (lambda d: d.update(schema=6), "schema: is 6, and this Plumbline reads 5"),
        (lambda d: d.pop("notes"), "notes"),
        (lambda d: d["phases"].update(build=-1), "build"),
        (lambda d: d["cases"][2].update(verdict="fine"), "cases[2].verdict"),
        (lambda d: d["cases"][1].pop("reference"), "cases[1].reference: is missing"),
        (lambda d: d["counts"].update({"pass": d["counts"]["pass"] + 1}), "counts"),
        (same_case_twice, "twice"),
        (lambda d: d["cases"][0].update(band=[1.0]), "cases[0].band"),
        (lambda d: d["cases"][0].update(routine="<b>"), "cases[0].case: routine"),
        (lambda d: d["cases"][0].update(unit="ms"), "cases[0].unit"),
    ],
)
def test_damage_is_one_line_with_file_key_and_fix(document, damage, named, declared: Declared):
    """Values of another type are exchanged one by one in ``tests/golden/damages.py``."""
    damage(document)
    with declared.raises(UsageError) as error:
        parse_summary(document, "there/summary.json")
    text = str(error.value)
    assert text.startswith("there/summary.json: ") and named in text and text.isprintable()


@plants("files", "empty, cut, an array, NaN, no text", "`summary.json`", "", 2, "summary.json: ")
@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b'{"schema": NaN}', b"\xff"])
def test_a_file_that_is_no_summary_is_named(tmp_path, content, declared: Declared):
    path = tmp_path / "summary.json"
    path.write_bytes(content)
    with declared.raises(UsageError):
        load_summary(path)


@plants("use", "a file that is not there", "`summary.json`", "", 2, "summary.json: No such file")
def test_a_missing_file_is_named(tmp_path, declared: Declared):
    with declared.raises(UsageError):
        load_summary(tmp_path / "summary.json")


# How it is made.

MPICH = make_mpi("mpich-5_0_2")
CRASH = LaunchOutcome(None, Verdict.CRASHED, "the program ended with exit code 139, SIGSEGV")
HOSTILE = '"q" <b> \n\r\x00\x1b[31m \u2028 \ud800 \U0001f600'


def written(folder: Path, launches: list[FinishedLaunch], catalog: ReferenceCatalog, **about) -> Path:
    about = {"mpis": (MPICH,), "phases": {"set-up": 1.23456, "running": 2.0}} | about
    return leave_summary(folder, launches, evaluate_launches(launches, catalog, "local"), **about)


def test_a_summary_is_read_back_as_it_was_meant(tmp_path: Path):
    done = finished(tmp_path)
    catalog = book_of(done)
    about = {"notes": ["a note"], "command": ["./plumbline", "nightly"]}
    summary = load_summary(written(tmp_path / "20261121T090000Z-1", [done], catalog, **about))
    assert summary.results == tuple(evaluate_launches([done], catalog, "local")) and summary.good
    assert (summary.session, summary.mode, summary.site) == ("20261121T090000Z-1", "nightly", "local")
    assert (summary.built_with, summary.notes) == ("CMake (no Spack)", ("a note",))
    assert summary.command == ("./plumbline", "nightly")
    assert summary.phases == {"set-up": 1.235, "running": 2.0}
    (launch,), (environment,) = summary.launches, summary.environments
    assert (launch.environment, launch.partition, launch.launch) == ("mpich-5_0_2", "local:cpu", 1)
    assert (launch.outcome, launch.reason, launch.seconds) == ("ok", "", 1.5)
    assert (environment.mpicc, environment.mpiexec) == ("/p/mpicc", "/p/mpiexec")
    assert environment.library == done.run["mpi_library"]


def test_what_is_shown_is_what_is_read_back(tmp_path: Path):
    """It is shown before it is written, so that a full disk cannot hide it."""
    done, bad = finished(tmp_path / "a"), finished(tmp_path / "b", outcome=CRASH, number=2)
    few = replace(done, launch=replace(done.launch, program="osu", cases=done.launch.cases[:1]))
    results = evaluate_launches([done], book_of(done), "local")
    about = {"mpis": (MPICH,), "notes": ["a note"], "phases": {"running": 1.23456}}
    summary = summarise(tmp_path, [done, bad, few], results, **about)
    write_summary(tmp_path / "summary.json", summary.to_dict())
    assert load_summary(tmp_path / "summary.json") == summary


def test_the_keys_of_the_file_and_their_order(tmp_path: Path):
    done = finished(tmp_path)
    data = json.loads(written(tmp_path, [done], book_of(done)).read_text())
    assert ", ".join(data) == (
        "schema, plumbline, session, mode, site, started_utc, ended_utc, command, strict, exit_status, "
        "built_with, notes, causes, phases, machine, environments, programs, counts, launches, cases"
    )
    assert ", ".join(data["machine"]) == (
        "host, cpu_model, kernel, cores, hardware_threads, sockets, memory_bytes, caches, firmware"
    )
    (environment,), (program,), (launch,) = (
        map(", ".join, data[key]) for key in ("environments", "programs", "launches")
    )
    assert environment == "name, family, version, library, origin, mpicc, mpiexec"
    assert program == "environment, program, version, compiler, flags, spec"
    assert launch == (
        "program, start, cases, environment, partition, processes, per_node, launch, seconds, outcome, "
        "reason, directory, spec, ranks_per_core"
    )
    assert (data["schema"], data["plumbline"]) == (5, "0.1.0")
    assert data["launches"][0]["spec"] == done.spec


def test_a_launch_with_wrong_data_is_told_as_failed(tmp_path: Path):
    wrong = finished_with_wrong_data(tmp_path / "wrong")
    (told,) = load_summary(written(tmp_path, [wrong], book_of(wrong, cases=CASES[1:]))).launches
    assert told.failed and told.reason == wrong.wrong[CASES[0].variable]


def test_text_from_outside_does_not_break_the_file(tmp_path: Path):
    done = finished(tmp_path, outcome=replace(CRASH, reason=HOSTILE))
    command = ["./plumbline", HOSTILE]
    path = written(tmp_path, [done], ReferenceCatalog(), notes=[HOSTILE], command=command)
    json.loads(path.read_bytes().decode("ascii"))
    summary = load_summary(path)
    assert summary.results[0].reason == HOSTILE
    assert summary.command[1] == HOSTILE


def test_each_case_has_its_key_its_parts_and_how_to_run_it_again(tmp_path: Path):
    done = finished(tmp_path)
    data = json.loads(written(tmp_path, [done], book_of(done)).read_text())
    assert data["counts"] == {"pass": len(CASES)}
    entry = next(each for each in data["cases"] if each["key"] == CASES[0].key)
    parts = ("environment", "program", "routine", "processes", "bytes", "unit", "verdict")
    expected = ["mpich-5_0_2", "mpicost", "bcast", 2, 8, "s", "pass"]
    assert [entry[part] for part in parts] == expected
    assert entry["reference_launches"] == 20
    assert entry["band"][0] < entry["value"] < entry["band"][1]
    assert entry["rerun"].startswith("./plumbline run --environment mpich-5_0_2")


def test_each_program_is_told_as_it_was_built(tmp_path: Path):
    """The optimisation level with which a benchmark was built stands beside its numbers."""
    done = finished(tmp_path)
    osu = BuiltBinary("mpich-5_0_2", "osu", "/p", "osu@8.0/abc", "8.0", "gcc 12.2.0", "-O2 -g")
    benchmark = replace(done, launch=replace(done.launch, program="osu", start="bw"), built=osu)
    skipped = replace(done, launch=replace(done.launch, program="imb", cases=()))
    place, crashed = "mpich-5_0_2", finished(tmp_path / "crashed", outcome=CRASH)
    by_itself = ("0.1.0", "gcc 12.2.0", "-O2")
    assert programs([crashed, done, benchmark, benchmark, skipped]) == [
        BuiltProgram(place, "mpicost", *by_itself, done.spec),
        BuiltProgram(place, "osu", "8.0", "gcc 12.2.0", "-O2 -g", "osu@8.0/abc"),
    ]
    summary = load_summary(written(tmp_path, [replace(done, built=osu)], ReferenceCatalog()))
    assert summary.programs[0].flags == "-O2 -g"
    (launch,) = summary.launches
    assert (launch.program, launch.start, launch.cases) == ("mpicost", "", len(CASES))


def test_what_a_build_tells_stands_the_program_tells_the_rest_and_nobody_what_never_ran(tmp_path: Path):
    done = finished(tmp_path)
    cmake = BuiltBinary("mpich-5_0_2", "mpicost", "/p", "cmake", compiler="gcc 12.2.0 by its build")
    copied = BuiltBinary("mpich-5_0_2", "osu", "/p", "osu@8.0/abc", source="copy.tar.gz")
    some = [finished(tmp_path, outcome=CRASH), replace(done, built=cmake), replace(done, built=copied)]
    lost, built, other = (programs([each])[0] for each in some)
    assert [lost.version, lost.compiler, lost.flags] == ["unknown"] * 3
    assert [built.version, built.compiler, built.flags] == ["0.1.0", "gcc 12.2.0 by its build", "-O2"]
    assert other.spec == "osu@8.0/abc, sources: copy.tar.gz"  # not the official ones


def test_an_environment_that_a_site_declares_is_described_by_what_ran(tmp_path: Path):
    (entry,) = environments((), [finished(tmp_path)])
    assert (entry.name, entry.origin, entry.mpicc) == ("mpich-5_0_2", "site", "")
    assert (entry.family, entry.version) == ("mpich", "5.0.2")
    assert entry.library.startswith("MPICH Version: 5.0.2")


@plants("lost", "a place that cannot be written to", "`summary.json`", "", 2, "cannot be written")
@pytest.mark.parametrize("place", ["a-file/summary.json", "a-directory"])
def test_a_summary_that_cannot_be_written_is_one_line(tmp_path, place: str, declared):
    (tmp_path / "a-file").write_text("")
    (tmp_path / "a-directory").mkdir()
    with declared.raises(UsageError) as refused:
        write_summary(tmp_path / place, {})
    assert str(refused.value).startswith(f"{tmp_path / place}: cannot be written: ")
    assert "\n" not in str(refused.value)


def test_a_number_that_json_does_not_know_is_never_written(tmp_path: Path):
    with pytest.raises(ValueError, match="JSON"):
        write_summary(tmp_path / "summary.json", {"value": float("nan")})
    assert not any(tmp_path.iterdir())


def test_a_device_is_written_to_and_stays_what_it_is(tmp_path: Path):
    """As ``--json /dev/stdout``, which is a link: replacing it would break the machine for everyone."""
    target, link, pipe = tmp_path / "target", tmp_path / "stdout", tmp_path / "pipe"
    link.symlink_to(target)
    write_summary(link, {"schema": 1})
    assert link.is_symlink()
    assert json.loads(target.read_text()) == {"schema": 1}
    os.mkfifo(pipe)
    end = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        write_summary(pipe, {"schema": 1})
        assert json.loads(os.read(end, 1000)) == {"schema": 1}
    finally:
        os.close(end)
    assert pipe.is_fifo()
