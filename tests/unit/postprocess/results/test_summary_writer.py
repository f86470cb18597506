"""The summary that a session writes is the summary that the report reads."""

from __future__ import annotations

import json
import os
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.files import write_summary
from postprocess.judging.evaluate import verdicts
from postprocess.model.launch import Finished, Outcome
from postprocess.model.session import Session
from postprocess.model.verdict import Verdict, exit_status
from postprocess.references.catalog import ReferenceBook
from postprocess.results.summary import load_summary, parse_summary
from postprocess.results.summary_writer import document, environments, programs
from site_configs.mpi.family import Mpi
from site_configs.topology.machine import Machine
from spack_envs.programs import Program
from tests.support.factories.launch import CASES, book_of, finished

MACHINE = Machine("n1", "a processor", "6.1", 2, 2, 1, 8 * 10**9, ())
MPICH = Mpi("mpich-5_0_2", "mpich", "5.0.2", "MPICH", "wheel", "/p", "/p/mpicc", "/p/mpiexec")
CRASH = Outcome(None, Verdict.CRASHED, "the program ended with exit code 139, SIGSEGV")
HOSTILE = '"q" <b> \n\r\x00\x1b[31m \u2028 \ud800 \U0001f600'


def session(directory: Path, **changes) -> Session:
    values = {"mode": "nightly", "site": "local", "command": ["./plumbline", "nightly"]}
    return Session(directory / "20261121T090000Z-1", **values | {"strict": False} | changes)


def written(
    directory: Path, launches: list[Finished], book: ReferenceBook, notes=(), **changes
) -> Path:
    results = verdicts(launches, book, "local")
    data = document(
        session(directory, **changes),
        "CMake (no Spack)",
        (MPICH,),
        launches,
        results,
        exit_status(results, strict=False),
        notes,
        {"set-up": 1.23456, "running": 2.0},
    )
    path = directory / "summary.json"
    write_summary(path, data)
    return path


def test_a_summary_is_read_back_as_it_was_meant(tmp_path: Path):
    done = finished(tmp_path)
    book = book_of(done)
    summary = load_summary(written(tmp_path, [done], book, ["a note"]))
    assert summary.results == tuple(verdicts([done], book, "local"))
    assert summary.good
    assert (summary.session, summary.mode, summary.site) == (
        "20261121T090000Z-1",
        "nightly",
        "local",
    )
    assert summary.built_with == "CMake (no Spack)"
    assert summary.command == ("./plumbline", "nightly")
    assert summary.notes == ("a note",)
    assert summary.phases == {"set-up": 1.235, "running": 2.0}
    (launch,) = summary.launches
    assert (launch.environment, launch.partition, launch.launch) == ("mpich-5_0_2", "local:cpu", 1)
    assert (launch.outcome, launch.reason, launch.seconds) == ("ok", "", 1.5)
    (environment,) = summary.environments
    assert (environment.mpicc, environment.mpiexec) == ("/p/mpicc", "/p/mpiexec")
    assert environment.library == done.run["mpi_library"]


def test_the_verdicts_are_the_same_before_and_after_the_file_is_written(tmp_path: Path):
    """They are shown before, so that a full disk cannot hide them."""
    done = finished(tmp_path)
    results = verdicts([done], book_of(done), "local")
    data = document(
        session(tmp_path),
        "CMake (no Spack)",
        (MPICH,),
        [done],
        results,
        0,
        ["a note"],
        {"running": 1.0},
    )
    write_summary(tmp_path / "summary.json", data)
    assert parse_summary(data) == load_summary(tmp_path / "summary.json")


def test_a_night_on_which_everything_failed_is_read_back_too(tmp_path: Path):
    bad = finished(tmp_path, outcome=CRASH)
    summary = load_summary(written(tmp_path, [bad], ReferenceBook()))
    assert {each.verdict for each in summary.results} == {Verdict.CRASHED}
    assert len(summary.failed) == len(CASES)
    assert not summary.good
    assert summary.launches[0].outcome == "crashed"
    assert summary.launches[0].reason == CRASH.reason
    assert summary.environments[0].library == bad.launch.library


def test_text_from_outside_does_not_break_the_file(tmp_path: Path):
    done = finished(tmp_path, outcome=replace(CRASH, reason=HOSTILE))
    path = written(tmp_path, [done], ReferenceBook(), [HOSTILE], command=["./plumbline", HOSTILE])
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
    assert [entry[part] for part in parts] == [
        "mpich-5_0_2",
        "mpicost",
        "bcast",
        2,
        8,
        "s",
        "pass",
    ]
    assert entry["reference_launches"] == 20
    assert entry["band"][0] < entry["value"] < entry["band"][1]
    assert entry["rerun"].startswith("./plumbline run --environment mpich-5_0_2")


def test_each_program_is_told_as_it_was_built(tmp_path: Path):
    """The optimisation level with which a benchmark was built stands beside its numbers."""
    done = finished(tmp_path)
    osu = Program("mpich-5_0_2", "osu", "/p", "osu@8.0/abc", "8.0", "gcc 12.2.0", "-O2 -g")
    benchmark = replace(done, launch=replace(done.launch, program="osu", start="bw"), built=osu)
    skipped = replace(done, launch=replace(done.launch, program="imb", cases=()))
    assert programs([done, benchmark, benchmark, skipped]) == [
        {
            "environment": "mpich-5_0_2",
            "program": "mpicost",
            "version": "unknown",
            "compiler": "unknown",
            "flags": "unknown",
            "spec": done.spec,
        },
        {
            "environment": "mpich-5_0_2",
            "program": "osu",
            "version": "8.0",
            "compiler": "gcc 12.2.0",
            "flags": "-O2 -g",
            "spec": "osu@8.0/abc",
        },
    ]
    summary = load_summary(written(tmp_path, [replace(done, built=osu)], ReferenceBook()))
    assert summary.programs[0].flags == "-O2 -g"
    (launch,) = summary.launches
    assert (launch.program, launch.start, launch.cases) == ("mpicost", "", len(CASES))


def test_sources_that_are_not_the_official_ones_are_told_beside_the_spec(tmp_path: Path):
    osu = Program("mpich-5_0_2", "osu", "/p", "osu@8.0/abc", source="copy.tar.gz")
    assert programs([replace(finished(tmp_path), built=osu)])[0]["spec"] == (
        "osu@8.0/abc, sources: copy.tar.gz"
    )


def test_an_environment_that_a_site_declares_is_described_by_what_ran(tmp_path: Path):
    (entry,) = environments((), [finished(tmp_path)])
    assert (entry["name"], entry["origin"], entry["mpicc"]) == ("mpich-5_0_2", "site", "")
    assert (entry["family"], entry["version"]) == ("mpich", "5.0.2")
    assert entry["library"].startswith("MPICH Version: 5.0.2")


def test_a_summary_replaces_an_earlier_one_whole(tmp_path: Path):
    path = tmp_path / "summary.json"
    path.write_text("x" * 100_000)
    write_summary(path, {"schema": 1})
    assert json.loads(path.read_text()) == {"schema": 1}
    assert os.listdir(tmp_path) == ["summary.json"]


@pytest.mark.parametrize("place", ["a-file/summary.json", "a-directory"])
def test_a_summary_that_cannot_be_written_is_one_line(tmp_path: Path, place: str):
    (tmp_path / "a-file").write_text("")
    (tmp_path / "a-directory").mkdir()
    with pytest.raises(UsageError) as refused:
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
