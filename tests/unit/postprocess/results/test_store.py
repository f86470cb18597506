"""A session is stored whole and once, and nothing that happens later changes it."""

import io
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from postprocess.base import files
from postprocess.model.case import Case
from postprocess.model.measurement import TrialSummary
from postprocess.model.verdict import Verdict
from postprocess.parsers import mpicost
from postprocess.results import store
from postprocess.results.store import StoreError, StoreRow, read_sessions, write_session
from postprocess.stats.launches import summarise_trials
from tests.support.factories import record as samples
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

SESSION = "20261121T090000Z-4711"
CASE = Case("laptop", "cpu", "mpich-5.0.2", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
SUMMARY = TrialSummary(1e-6, 0.95e-6, 1.1e-6, 0.9e-6, 2e-6, 3e-6, 2, 1, 0, True, False)
ROW = StoreRow(
    session=SESSION,
    started_utc="2026-11-21T09:00:00Z",
    launch=1,
    case=CASE,
    verdict=Verdict.REGRESSED,
    reason="slow",
    reference=0.5e-6,
    lower=0.4e-6,
    upper=0.6e-6,
    value=1e-6,
    figures='{"Min Latency(us)": 0.5}',
    summary=SUMMARY,
    t_max=[9e-6, 1e-6, 1.2e-6],
    t_min=[8e-6, 0.0, 1.1e-6],
    t_global=[9.5e-6, 1.1e-6, 1.3e-6],
    skew=[0.5e-6, 0.1e-6, 0.0],
    late=[False, False, True],
    dropped=1,
    mpi_library='MPICH Version: 5.0.2\n"<b>\u2028',
    suite_version="0.1.0",
    source_hash="0123456789abcdef",
    spec_hash="",
    compiler="gcc 12.2.0",
    flags="-O3",
    hosts="n1,n2",
    mode="nightly",
    q=0.25,
    detectable=0.08,
    expected="known",
    provenance='{"record": "run"}',
)
LOST = StoreRow(SESSION, "2026-11-21T09:00:00Z", 2, CASE, Verdict.TIMEOUT, "no end after 60 s")


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "store" / f"{SESSION}.parquet"


def names(folder: Path) -> list[str]:
    return sorted(os.listdir(folder))


# ---------------------------------------------------------------- round trip


def test_a_row_is_read_as_it_was_written(path):
    write_session(path, [ROW, LOST])
    frame = read_sessions(path.parent)
    assert frame.schema == store.SCHEMA
    first, second = frame.rows(named=True)
    for field in fields(Case):
        assert first[field.name] == second[field.name] == getattr(CASE, field.name)
    for field in fields(TrialSummary):
        assert first[field.name] == getattr(SUMMARY, field.name)
        assert second[field.name] is None
    plain = [f.name for f in fields(StoreRow) if f.name not in ("case", "summary", "verdict")]
    for name in plain:
        assert first[name] == getattr(ROW, name)
        stored = getattr(LOST, name)
        assert second[name] == (list(stored) if isinstance(stored, tuple) else stored)
    assert (first["key"], first["verdict"]) == (CASE.key, "regressed")
    assert second["verdict"] == "timeout"


def test_the_columns_are_those_that_queries_name():
    assert store.SCHEMA.names() == [
        *["session", "started_utc", "launch", "system", "partition", "environment", "program"],
        *["routine", "peer", "cache", "sync", "processes", "per_node", "bytes", "key"],
        *["verdict", "reason", "reference", "lower", "upper"],
        *["q", "detectable", "expected", "unit", "value"],
        *["judged", "judged_launches", "headline_judged", "headline_reference", "figures"],
        *["headline", "steady", "median", "minimum", "p90", "p99", "kept", "candidates", "removed"],
        *["filter_saturated", "bimodal"],
        *["t_max", "t_min", "t_global", "skew", "late", "dropped", "mpi_library"],
        *["suite_version", "source_hash", "spec_hash"],
        *["compiler", "flags", "hosts", "mode", "provenance"],
    ]


FINITE = st.floats(min_value=0, allow_infinity=False)
MAYBE = st.none() | FINITE
ROWS = st.builds(
    replace,
    st.sampled_from([ROW, LOST]),
    launch=st.integers(min_value=0, max_value=2**62),
    verdict=st.sampled_from(Verdict),
    reason=st.text(),
    reference=MAYBE,
    lower=MAYBE,
    upper=MAYBE,
    unit=st.sampled_from(["s", "MB/s"]),
    value=MAYBE,
    t_max=st.lists(FINITE).map(np.array),
    late=st.lists(st.booleans()),
    provenance=st.text(),
)


@given(st.lists(ROWS, max_size=5))
def test_any_row_survives(tmp_path_factory, rows):
    path = tmp_path_factory.mktemp("any") / f"{SESSION}.parquet"
    write_session(path, rows)
    read = read_sessions(path.parent).rows(named=True)
    for row, back in zip(rows, read, strict=True):
        for name in ("launch", "reason", "reference", "lower", "upper", "provenance"):
            assert back[name] == getattr(row, name)
        assert back["t_max"] == list(row.t_max)
        assert back["late"] == list(row.late)


def test_the_trials_of_a_launch_can_all_be_found_again(path, tmp_path):
    """Every published number can be recomputed from the store."""
    launch = mpicost.read_launch(samples.write(tmp_path / "out.jsonl", samples.launch()))
    rows = [
        replace(
            ROW,
            case=launch.case(record, "laptop", "cpu", "mpich-5.0.2"),
            summary=record.summary,
            **{name: getattr(record, name) for name in ("t_max", "t_min", "t_global", "skew")},
            late=record.late,
            provenance=json.dumps(launch.run),
        )
        for record in launch.cases
    ]
    write_session(path, rows)
    for record, back in zip(launch.cases, read_sessions(path.parent).rows(named=True), strict=True):
        trials, late = np.array(back["t_max"]), np.array(back["late"])
        assert summarise_trials(trials, late, back["dropped"]) == record.summary
        assert json.loads(back["provenance"]) == launch.run


def test_text_that_utf8_cannot_hold_costs_nothing(path):
    """A host name read with surrogate escapes must not lose the night's data."""
    write_session(path, [replace(ROW, reason="host \udcff\x00 died")])
    assert read_sessions(path.parent)["reason"].to_list() == ["host \\udcff\x00 died"]


def test_numpy_numbers_are_numbers(path):
    row = replace(ROW, launch=np.int64(3), reference=np.float64(1e-6), late=np.array([True]))
    write_session(path, [row])
    (back,) = read_sessions(path.parent).rows(named=True)
    assert (back["launch"], back["reference"], back["late"]) == (3, 1e-6, [True])


def test_a_session_without_rows_is_a_file(path):
    write_session(path, [])
    frame = read_sessions(path.parent)
    assert frame.is_empty() and frame.schema == store.SCHEMA


# ---------------------------------------------------------------- several sessions


def write_some(folder: Path, *sessions: str) -> None:
    for session in sessions:
        write_session(folder / f"{session}.parquet", [replace(ROW, session=session)])


def test_sessions_come_in_order_or_as_asked(tmp_path):
    write_some(tmp_path, "b", "a", "c")
    assert read_sessions(tmp_path)["session"].to_list() == ["a", "b", "c"]
    assert read_sessions(tmp_path, ["c", "a"])["session"].to_list() == ["c", "a"]
    assert read_sessions(tmp_path, []).is_empty()


@plants("use", "a folder that is not there, or is a file", "the store", "", 2,
        "none: No such file or directory | file: Not a directory")  # fmt: skip
def test_a_store_that_is_not_there_is_named(tmp_path, declared: Declared):
    assert read_sessions(tmp_path).is_empty()
    with declared.raises(StoreError, match="none: No such file or directory"):
        read_sessions(tmp_path / "none")
    (tmp_path / "file").write_text("")
    with declared.raises(StoreError, match="file: Not a directory"):
        read_sessions(tmp_path / "file")


def test_what_a_killed_run_left_is_passed_over(tmp_path):
    write_some(tmp_path, "a")
    (tmp_path / ".b.parquet.4711-0123abcd.tmp").write_bytes(b"PAR1 half a file")
    (tmp_path / "notes.txt").write_text("hello")
    assert read_sessions(tmp_path)["session"].to_list() == ["a"]


# ---------------------------------------------------------------- damage


@plants("files", "a folder or a dead link in the place of a file", "the store", "", 2,
        "b.parquet: is not a regular file | b.parquet: No such file")  # fmt: skip
def test_a_folder_or_a_dead_link_of_that_name_is_named(tmp_path, declared: Declared):
    (tmp_path / "b.parquet").mkdir()
    with declared.raises(StoreError, match=r"b\.parquet: is not a regular file"):
        read_sessions(tmp_path)
    (tmp_path / "b.parquet").rmdir()
    (tmp_path / "b.parquet").symlink_to(tmp_path / "gone")
    with declared.raises(StoreError, match=r"b\.parquet: No such file"):
        read_sessions(tmp_path)


def check_damage(folder: Path, damage: Callable[[bytearray], None], declared: Declared) -> None:
    """Hold against the fault how a session is refused whose file was damaged."""
    write_some(folder, "a")
    content = bytearray((folder / "a.parquet").read_bytes())
    damage(content)
    (folder / "a.parquet").write_bytes(content)
    with declared.raises(StoreError):
        read_sessions(folder)


@plants("files", "cut off at any byte", "a session of the store", "", 2,
        "a.parquet: is damaged, its checksum is wrong")  # fmt: skip
@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_a_file_cut_anywhere_is_named(tmp_path_factory, declared: Declared, data):
    def cut(content: bytearray) -> None:
        del content[data.draw(st.integers(0, len(content) - 1)) :]

    check_damage(tmp_path_factory.mktemp("cut"), cut, declared)


@plants("files", "one bit flipped, anywhere", "a session of the store", "", 2,
        "a.parquet: is damaged, its checksum is wrong")  # fmt: skip
@given(st.data())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=50)
def test_not_one_bit_changes_unseen(tmp_path_factory, declared: Declared, data):
    """A reader of Parquet might crash on such a file, or return other numbers."""

    def flip(content: bytearray) -> None:
        content[data.draw(st.integers(0, len(content) - 1))] ^= 1 << data.draw(st.integers(0, 7))

    check_damage(tmp_path_factory.mktemp("bit"), flip, declared)


def test_a_mark_in_the_data_is_data(path):
    row = replace(ROW, reason=files.PLACEHOLDER, provenance=files.PLACEHOLDER)
    write_session(path, [row, replace(row, reason="z" * 10 + files.PLACEHOLDER)])
    assert read_sessions(path.parent)["provenance"].to_list() == [files.PLACEHOLDER] * 2


@plants("files", "something else under its name, with a good checksum",
        "a session of the store", "", 2, "is not a Parquet file")  # fmt: skip
def test_what_is_whole_but_no_parquet_is_named(tmp_path, declared: Declared):
    (tmp_path / "b.parquet").write_bytes(files.seal_data(files.PLACEHOLDER.encode()))
    with declared.raises(StoreError, match=r"b\.parquet: is not a Parquet file"):
        read_sessions(tmp_path)


def test_a_file_without_a_place_for_the_seal_is_not_sealed():
    with pytest.raises(ValueError, match="no placeholder"):
        files.seal_data(b"PAR1")


def rewrite(path: Path, frame: pl.DataFrame, **told: str) -> None:
    """Put other rows, with these words in the head, into a session's file, and seal it as we do."""
    buffer = io.BytesIO()
    frame.write_parquet(buffer, metadata=told | {"seal": files.PLACEHOLDER})
    path.write_bytes(files.seal_data(buffer.getvalue()))


@plants("files", "a column lost, added, of another type or in another place",
        "a session of the store", "", 2, "its columns are not those of its version")  # fmt: skip
@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.drop("late"),
        lambda frame: frame.with_columns(extra=pl.lit(1)),
        lambda frame: frame.with_columns(pl.col("launch").cast(pl.String)),
        lambda frame: frame.select(reversed(frame.columns)),
    ],
)
def test_other_columns_are_refused(path, change, declared: Declared):
    write_session(path, [ROW])
    rewrite(path, change(pl.read_parquet(path)), schema="3")
    with declared.raises(StoreError):
        read_sessions(path.parent)
    with declared.raises(StoreError):
        store.read_session(path, ["key"])


@plants("files", "a verdict or unit that there is not, or a text that is missing, in 4 ways",
        "a session of the store", "", 2, "holds what no session has; move it elsewhere")  # fmt: skip
@pytest.mark.parametrize(
    "changed", [{"verdict": "perfect"}, {"unit": "furlong"}, {"hosts": None}, {"key": None}]
)
def test_a_text_that_no_session_has_is_refused(path, changed, declared: Declared):
    write_session(path, [ROW])
    new = [pl.lit(text, pl.String).alias(name) for name, text in changed.items()]
    rewrite(path, pl.read_parquet(path).with_columns(new), schema="3")
    with declared.raises(StoreError):
        store.read_session(path)


# ---------------------------------------------------------------- versions


@plants("files", "written by another version", "a session of the store", "", 2,
        "of the store, and this Plumbline knows 3; read it with the Plumbline that wrote it")  # fmt: skip
@pytest.mark.parametrize("told", [{"schema": each} for each in ("2", "4", "", "two")] + [{}])
def test_a_file_of_another_version_is_refused(path, told, declared: Declared):
    """Even if its columns look like ours: another version may mean other things by them."""
    write_session(path, [ROW])
    rewrite(path, pl.read_parquet(path), **told)
    with declared.raises(StoreError) as caught:
        read_sessions(path.parent)
    version = told.get("schema")
    assert str(caught.value).startswith(f"{path}: is of version {version!r} of the store, and ")


@plants("stale", "a copy of a session under another name", "the store", "", 2,
        "b.parquet: holds another session")  # fmt: skip
def test_a_copy_under_another_name_would_count_twice(tmp_path, declared: Declared):
    write_some(tmp_path, "a")
    (tmp_path / "b.parquet").write_bytes((tmp_path / "a.parquet").read_bytes())
    with declared.raises(StoreError):
        read_sessions(tmp_path)


# ---------------------------------------------------------------- written once, or not at all


@plants("lost", "a session of the same name", "writing into the store", "", 2,
        "stored already and never overwritten")  # fmt: skip
def test_a_session_is_never_overwritten(path, declared: Declared):
    write_session(path, [ROW])
    before = path.read_bytes()
    with declared.raises(StoreError):
        write_session(path, [LOST])
    assert path.read_bytes() == before
    assert names(path.parent) == [path.name]


@pytest.mark.parametrize("name", ["other.parquet", SESSION, f"{SESSION}.csv"])
def test_a_file_is_named_after_its_session(tmp_path, name):
    with pytest.raises(StoreError, match="not named after its session"):
        write_session(tmp_path / name, [ROW])
    assert names(tmp_path) == []


@plants("stale", "a row of another session", "writing into the store", "", 2,
        "not named after its session")  # fmt: skip
def test_a_row_of_another_session_is_refused(path, declared: Declared):
    with declared.raises(StoreError):
        write_session(path, [ROW, replace(ROW, session="other")])
    assert not path.exists()


def run(script: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", script, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)


WRITE = """
import os, resource, signal, sys
from pathlib import Path
from postprocess.model.case import Case
from postprocess.results.store import StoreRow, StoreError, write_session
from postprocess.model.verdict import Verdict
path = Path(sys.argv[1])
case = Case("laptop", "cpu", "mpich", "mpicost", "bcast", 0, "flush", "window", 2, 2, 8)
times = [i * 1e-9 + 1e-6 for i in range(1000)]
rows = [StoreRow(path.stem, "", n, case, Verdict.PASS, t_max=times) for n in range(50)]
"""

FULL_DISK = f"""{WRITE}resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), int(sys.argv[2])))
try:
    write_session(path, rows)
except StoreError as error:
    print(error)
    sys.exit(2)
"""


@plants("lost", "a file system that is full after 0, 100 or 4096 bytes",
        "writing a session into the store", "", 2, "cannot be written: File too large")  # fmt: skip
@pytest.mark.parametrize("limit", [0, 100, 4096])
def test_a_full_disk_leaves_earlier_sessions_and_nothing_else(tmp_path, limit, declared: Declared):
    write_some(tmp_path, "a")
    before = (tmp_path / "a.parquet").read_bytes()
    done = run(FULL_DISK, tmp_path / "b.parquet", limit)
    assert done.returncode == 2, done.stderr
    assert done.stdout.startswith(f"{tmp_path / 'b.parquet'}: cannot be written: File too large")
    assert done.stdout.count("\n") == 1
    assert names(tmp_path) == ["a.parquet"]
    assert (tmp_path / "a.parquet").read_bytes() == before
    write_some(tmp_path, "b")
    assert read_sessions(tmp_path)["session"].to_list() == ["a", "b"]
    declared.check((), done.returncode, [done.stdout])


KILLED = f"""{WRITE}def die(*_):
    os.kill(os.getpid(), signal.SIGKILL)
setattr(os, sys.argv[2], die)
write_session(path, rows)
"""


@pytest.mark.parametrize("moment", ["fsync", "link"])
def test_a_kill_leaves_earlier_sessions_and_the_next_run_works(tmp_path, moment):
    write_some(tmp_path, "a")
    before = (tmp_path / "a.parquet").read_bytes()
    done = run(KILLED, tmp_path / "b.parquet", moment)
    assert done.returncode == -signal.SIGKILL
    assert len(names(tmp_path)) == 2, "the kill came while a temporary file was there"
    assert not (tmp_path / "b.parquet").exists()
    assert read_sessions(tmp_path)["session"].to_list() == ["a"]
    write_some(tmp_path, "b")
    assert read_sessions(tmp_path)["session"].to_list() == ["a", "b"]
    assert (tmp_path / "a.parquet").read_bytes() == before


RACE = f"""{WRITE}sys.stdin.readline()
try:
    write_session(path, rows)
    print("stored")
except StoreError:
    print("refused")
"""


def test_of_two_writers_of_one_session_one_is_refused(tmp_path):
    command = [sys.executable, "-c", RACE, str(tmp_path / "a.parquet")]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "cwd": ROOT}
    writers = [subprocess.Popen(command, **pipes) for _ in range(2)]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()
    assert sorted(writer.communicate()[0] for writer in writers) == ["refused\n", "stored\n"]
    assert names(tmp_path) == ["a.parquet"]
    assert read_sessions(tmp_path).height == 50
