"""Planted faults, end to end, on real MPIs: each safeguard is seen to work, and which verdict it gives."""

from __future__ import annotations

import json
import math
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta, timezone
from pathlib import Path

import polars as pl
import pytest

from postprocess.base.processes import find_processes
from postprocess.model.case import Case
from postprocess.model.reference import Reference
from postprocess.model.verdict import Verdict
from postprocess.references.catalog import load_catalog, read_provenance
from postprocess.references.reference_file import load_references, locate_references
from postprocess.results.store import StoreRow, write_session
from postprocess.stats.band import compute_band, compute_call_limit
from site_configs.schema.variables import SESSION
from tests.support.factories.stated_references import write_stated_references
from tests.support.faulty_site import plant, write_faulty_site
from tests.support.mpi import Installation, fault_library, of_family
from tests.support.plumbline_runner import Ended, Workshop

FEW = ("--program", "mpicost", "--routine", "bcast,reduce_sum", "--trials", "5")
SHORT = ("--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--trials", "5")
FAMILIES = ["mpich", pytest.param("openmpi", marks=pytest.mark.long)]
#: Of the fault: the verdict of its only case, and what the reason says.
FAULTS = {
    "hang": ("timeout", ""),
    "early": ("crashed", "exit code"),
    "crash": ("crashed", "exit code"),
    "late": ("crashed", "exit code"),
    "exit": ("crashed", "exit code 9"),
    "corrupt": ("incorrect", "wrong data"),
}
CENTER = 5e-2  #: seconds; of references that say what no noise of a shared machine contradicts,
SPREAD = (
    0.1  #: with this spread on the logarithm: the band ends at 0.06 s, the call limit at 0.11 s
)


@pytest.fixture(scope="module")
def openmpi() -> Installation:
    return of_family("openmpi")


@pytest.fixture(scope="module")
def libraries(
    mpich: Installation, openmpi: Installation, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """The library that plants faults, by name of the MPI."""
    directory = tmp_path_factory.mktemp("libraries")
    return {mpi.name: fault_library(mpi, directory) for mpi in (mpich, openmpi)}


@pytest.fixture(scope="module")
def library(mpich: Installation, libraries: dict[str, Path]) -> Path:
    return libraries[mpich.name]


@pytest.fixture(scope="module")
def reviewed(
    workshop: Workshop, mpich: Installation, openmpi: Installation, libraries: dict[str, Path]
) -> Path:
    """References of two MPIs, calibrated by the command and then given a stated center and spread.

    The library is in front of both and plants nothing: what it plants later is all that differs.
    """
    root = workshop.home / "reviewed"
    names = f"{mpich.name},{openmpi.name}"
    loaded = [f"--set-env={name}:LD_PRELOAD={path}" for name, path in libraries.items()]
    options = ("--launches", "2", "--output", str(root))
    ended = workshop.run("calibrate", "--environment", names, *FEW, *loaded, *options)
    assert ended.status == 0, ended.output + ended.errors
    for name in names.split(","):
        path = locate_references(root, "local", "cpu", name)
        measured = load_references(path, "local", "cpu", name).values()
        wide = [Reference(each.case, CENTER, SPREAD, 20) for each in measured]
        write_stated_references(path, wide, read_provenance(path))
    return root


def planted(mpi: Installation, library: Path, fault: str, **more: object) -> list[str]:
    """Options that plant a fault into the launches of one environment."""
    variables = {"LD_PRELOAD": library, "PLANTED_FAULT": fault}
    variables |= {f"PLANTED_{name.upper()}": value for name, value in more.items()}
    return plant({mpi.name: variables})


def restless_nights(store: Path, cases: Iterable[Case]) -> list[Path]:
    """Nights before, in which these cases were well and now far above their center, now far below it."""
    written = []
    for number in range(12):
        moment = datetime.now(timezone.utc) - timedelta(days=1 + number)
        name, started = moment.strftime("%Y%m%dT%H%M%SZ-1"), moment.strftime("%Y-%m-%dT%H:%M:%SZ")
        told = {"value": CENTER * math.exp(2 * (-1) ** number), "reference": CENTER}
        rows = [
            StoreRow(name, started, 1, case, Verdict.PASS, mode="nightly", **told) for case in cases
        ]
        written.append(store / f"{name}.parquet")
        write_session(written[-1], rows)
    return written


def test_healthy_machine_passes_and_reframe_has_the_bands_that_nights_widened(
    workshop: Workshop, reviewed: Path, mpich: Installation, library: Path
) -> None:
    (known,) = load_catalog([reviewed], [("local:cpu", mpich.name)]).sets.values()
    nights = restless_nights(workshop.home / "store", known.references)
    options = ("--environment", mpich.name, *FEW, *planted(mpich, library, "none"))
    ended = workshop.measure(*options, "--references", str(reviewed))
    for path in nights:
        path.unlink()
    assert ended.status == 0, ended.output
    assert set(ended.verdicts().values()) <= {"pass", "fast"}
    assert len(ended.verdicts()) == 6
    cases = {f"local:cpu:{Case.from_key(e['key']).variable}": e for e in ended.summary["cases"]}
    alone = max(compute_band(each).upper for each in known.references.values())
    assert min(each["band"][1] for each in cases.values()) > 2 * alone
    session = workshop.home / "sessions" / ended.summary["session"]
    (run,) = json.loads((session / "reframe" / "report.json").read_text())["runs"]
    asserted = {
        name: told[1] * (1 + told[3])
        for test in run["testcases"]
        for name, told in (test["perfvalues"] or {}).items()
    }
    assert asserted == pytest.approx({name: each["band"][1] for name, each in cases.items()})


def beyond_all(reviewed: Path, mpi: Installation) -> float:
    """Seconds beyond the call limits of all references of an MPI."""
    (known,) = load_catalog([reviewed], [("local:cpu", mpi.name)]).sets.values()
    return 2 * max(compute_call_limit(each) for each in known.references.values())


@pytest.mark.parametrize("lasting", [True, False])
def test_slowdown_is_regressed_only_if_fresh_launches_repeat_it(
    workshop: Workshop,
    reviewed: Path,
    mpich: Installation,
    library: Path,
    tmp_path: Path,
    lasting: bool,
) -> None:
    beyond = beyond_all(reviewed, mpich)
    mark = tmp_path / "mark"
    mark.touch()
    once = {} if lasting else {"once": mark}
    delay = planted(mpich, library, "delay", bytes=1_000_000, seconds=beyond, **once)
    options = ("--environment", mpich.name, *FEW, *delay, "--references", str(reviewed))
    ended = workshop.measure(*options, command="nightly")
    expected = {f"{mpich.name} bcast 1000000": "regressed" if lasting else "cleared"}
    found = ended.verdicts()
    assert {name: word for name, word in found.items() if word not in ("pass", "fast")} == expected
    assert ended.status == (1 if lasting else 0), ended.output
    (reason,) = ended.reasons() - {""} - {r for r in ended.reasons() if "times as fast" in r}
    told = "; so were 5 of 5 fresh launches: " if lasting else "; 2 of 2 fresh launches were not: "
    assert told in reason
    assert mark.exists() == lasting
    assert "slow: local:cpu:" in ended.output and "measuring 1 case again" in ended.output


@pytest.mark.long
def test_one_slow_launch_of_three_is_outvoted(
    workshop: Workshop, reviewed: Path, mpich: Installation, library: Path, tmp_path: Path
) -> None:
    """ReFrame fails that launch, and so does Plumbline: they agree."""
    mark = tmp_path / "mark"
    mark.touch()
    beyond = beyond_all(reviewed, mpich)
    delay = planted(mpich, library, "delay", bytes=1_000_000, seconds=beyond, once=mark)
    options = ("--environment", mpich.name, *FEW, *delay, "--references", str(reviewed))
    ended = workshop.measure(*options, "--launches", "3")
    assert ended.status == 0, ended.output
    assert not mark.exists()
    assert {case["launches"] for case in ended.summary["cases"]} == {3}
    assert "fail" in ended.output and "measuring" not in ended.output


@pytest.mark.long
def test_planted_slowdown_is_found_exactly_where_it_is(
    workshop: Workshop,
    reviewed: Path,
    mpich: Installation,
    openmpi: Installation,
    libraries: dict[str, Path],
) -> None:
    beyond = beyond_all(reviewed, openmpi)
    delay = planted(openmpi, libraries[openmpi.name], "delay", bytes=10_000, seconds=beyond)
    delay += planted(mpich, libraries[mpich.name], "none")
    names = f"{mpich.name},{openmpi.name}"
    ended = workshop.measure("--environment", names, *FEW, *delay, "--references", str(reviewed))
    slow = {name for name, verdict in ended.verdicts().items() if verdict == "regressed"}
    assert slow == {f"{openmpi.name} bcast 10000", f"{openmpi.name} bcast 1000000"}
    assert ended.status == 1
    again = "--program mpicost --routine bcast --processes 2 --bytes 10000"
    assert f"--environment {openmpi.name} {again}" in ended.output
    assert len(ended.verdicts()) == 12


@pytest.fixture(scope="module")
def faulty(workshop: Workshop, mpich: Installation, library: Path, tmp_path_factory) -> Ended:
    """A session with each of these faults. Strict: nothing is calibrated before."""
    site = write_faulty_site(tmp_path_factory.mktemp("faulty") / "faulty.py", mpich, FAULTS)
    faults = {name: {"LD_PRELOAD": library, "PLANTED_FAULT": name} for name in FAULTS}
    words = (*SHORT, "--processes", "2", "--time-limit", "10", "--strict", *plant(faults))
    return workshop.measure("--site", str(site), *words)


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_fault_has_its_verdict(workshop: Workshop, faulty: Ended, fault: str) -> None:
    verdict, said = FAULTS[fault]
    (case,) = (each for each in faulty.summary["cases"] if each["environment"] == fault)
    assert case["verdict"] == verdict, case["reason"]
    assert said in case["reason"]
    assert faulty.status == 1
    assert not find_processes(SESSION, str(workshop.home), prefix=True)  # not even of what hung


@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_data_fails_its_own_cases(
    workshop: Workshop, reviewed: Path, libraries: dict[str, Path], family: str
) -> None:
    """Every broadcast damages a byte. The sums beside it are verified, judged and good."""
    mpi = of_family(family)
    options = [*FEW, *planted(mpi, libraries[mpi.name], "corrupt"), "--references", str(reviewed)]
    ended = workshop.measure("--environment", mpi.name, *options, command="nightly")
    verdicts = ended.verdicts()
    assert len(verdicts) == 6
    for name, verdict in verdicts.items():
        assert verdict in ({"incorrect"} if " bcast " in name else {"pass", "fast"}), name
    assert ended.status == 1
    wrong = [reason for reason in ended.reasons() if "wrong data" in reason]
    pattern = r"wrong data: bcast with \d+ bytes: rank 1 received \S+ in element 0 instead of \S+, "
    assert len(wrong) == 3 and all(re.match(pattern, reason) for reason in wrong), wrong


@pytest.mark.parametrize("family", FAMILIES)
def test_slow_clock_in_front_of_the_mpi_is_not_comparable(
    workshop: Workshop, reviewed: Path, family: str, tmp_path: Path
) -> None:
    """Every time is half as long as it is: four cases were fast, and the night was well."""
    mpi = of_family(family)
    clock = fault_library(mpi, tmp_path, "half_speed")
    options = (*SHORT, f"--set-env={mpi.name}:LD_PRELOAD={clock}", "--references", str(reviewed))
    ended = workshop.measure("--environment", mpi.name, *options, command="nightly")
    assert set(ended.verdicts().values()) == {"not-comparable"}
    (reason,) = ended.reasons()
    assert reason.startswith(f"{clock.name} (")
    assert "is loaded in front of the MPI, and faulty_mpi-" in reason
    assert ended.status == 1


@pytest.mark.long
def test_failed_build_names_its_mpi_and_spares_the_others(
    reviewed: Path,
    mpich: Installation,
    openmpi: Installation,
    libraries: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The compiler of one MPI refuses the suite's own sources."""
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in *mpich*routines.c*) exit 1 ;; esac\nexec cc "$@"\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("CC", str(compiler))
    fresh = Workshop(tmp_path / "home")
    names = f"{mpich.name},{openmpi.name}"
    options = planted(openmpi, libraries[openmpi.name], "none")
    ended = fresh.measure("--environment", names, *SHORT, *options, "--references", str(reviewed))
    verdicts = ended.verdicts()
    assert verdicts[f"{mpich.name} bcast 8"] == "incomplete"
    assert any("the build failed" in reason for reason in ended.reasons())
    assert verdicts[f"{openmpi.name} bcast 8"] in {"pass", "fast"}
    assert ended.status == 1


@pytest.mark.long
def test_missing_reference_fails_a_strict_run(workshop: Workshop, mpich: Installation) -> None:
    words = ["--program", "mpicost", "--routine", "barrier", "--trials", "11", "--strict"]
    ended = workshop.measure("--environment", mpich.name, *words)
    assert set(ended.verdicts().values()) == {"no-reference"}
    assert ended.status == 1


@pytest.mark.long
def test_damaged_reference_stops_before_anything_runs(
    workshop: Workshop, reviewed: Path, mpich: Installation, tmp_path: Path
) -> None:
    root = tmp_path / "references"
    shutil.copytree(reviewed, root)
    path = locate_references(root, "local", "cpu", mpich.name)
    path.write_text(path.read_text().replace("\ts\t", "\tus\t", 1))
    ended = workshop.run("run", "--environment", mpich.name, *SHORT, "--references", str(root))
    assert ended.status == 2
    assert ended.errors.count("\n") == 1
    assert str(path) in ended.errors and "unit" in ended.errors


@pytest.mark.long
@pytest.mark.parametrize(
    "words",
    [("--environment", "no-such-mpi"), ("--routine", "no_such_routine"), ("--processes", "1024")],
)
def test_selection_that_matches_nothing_is_refused(
    workshop: Workshop, words: tuple[str, str]
) -> None:
    ended = workshop.run("run", *words)
    assert ended.status == 2
    assert ended.errors.count("\n") == 1, ended.errors
    assert "matches no case" in ended.errors


@pytest.mark.long
def test_driver_killed_in_the_middle(
    workshop: Workshop, reviewed: Path, mpich: Installation, library: Path
) -> None:
    before = {path: path.read_bytes() for path in (workshop.home / "store").glob("*.parquet")}
    assert before
    options = [*planted(mpich, library, "hang"), "--references", str(reviewed)]
    process = workshop.start("run", "--environment", mpich.name, *SHORT, *options)
    wait_for_program(workshop)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    options = [*planted(mpich, library, "none"), "--references", str(reviewed)]
    ended = workshop.measure("--environment", mpich.name, *SHORT, *options)
    assert ended.status == 0, ended.output
    assert not find_processes(SESSION, str(workshop.home), prefix=True)
    assert all(path.read_bytes() == data for path, data in before.items())


@pytest.mark.long
def test_two_at_once_in_one_work_directory(
    workshop: Workshop, reviewed: Path, mpich: Installation, library: Path
) -> None:
    options = [*planted(mpich, library, "hang"), "--references", str(reviewed)]
    first = workshop.start("run", "--environment", mpich.name, *SHORT, *options)
    try:
        wait_for_program(workshop)
        second = workshop.run("nightly")
        assert second.status == 2
        assert second.errors.count("\n") == 1
        assert f"in use by process {first.pid}" in second.errors
    finally:
        first.terminate()
        first.communicate()
    assert not find_processes(SESSION, str(workshop.home), prefix=True)


def wait_for_program(workshop: Workshop) -> None:
    """Until the parallel program of a session runs; fails rather than waits for ever."""
    deadline = time.monotonic() + 120
    while "mpicost" not in find_processes(SESSION, str(workshop.home), prefix=True).values():
        assert time.monotonic() < deadline, "the program never started"
        time.sleep(0.1)


def unmount(directory: Path) -> None:
    """Unmount; a process that was killed may keep its directory busy for a moment."""
    deadline = time.monotonic() + 60
    while subprocess.run(["umount", str(directory)], capture_output=True, check=False).returncode:
        assert time.monotonic() < deadline, f"{directory} stays busy"
        time.sleep(0.1)


@contextmanager
def nearly_full(directory: Path, size: str) -> Iterator[None]:
    """A directory on a file system with hardly any room; what it held is back afterwards."""
    aside = directory.with_name(f"{directory.name}.aside")
    directory.rename(aside)
    directory.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(directory)]
    mounted = subprocess.run(mount, capture_output=True, text=True, check=False)
    try:
        if mounted.returncode != 0:
            pytest.skip(f"no small file system can be mounted here: {mounted.stderr.strip()}")
        yield
    finally:
        if mounted.returncode == 0:
            unmount(directory)
        directory.rmdir()
        aside.rename(directory)


@pytest.mark.long
@pytest.mark.parametrize(("directory", "size"), [("sessions", "64k"), ("store", "8k")])
def test_full_disk_is_one_line_and_loses_nothing(
    workshop: Workshop,
    reviewed: Path,
    mpich: Installation,
    library: Path,
    directory: str,
    size: str,
) -> None:
    words = ["run", "--environment", mpich.name, *SHORT, "--references", str(reviewed)]
    words += planted(mpich, library, "none")
    before = {path: path.read_bytes() for path in (workshop.home / "store").glob("*.parquet")}
    with nearly_full(workshop.home / directory, size):
        ended = workshop.run(*words)
        half = list((workshop.home / directory).glob("*.parquet"))
    assert ended.status == 2
    assert ended.errors.count("\n") == 1 and "No space left" in ended.errors
    assert not half
    assert before and all(path.read_bytes() == data for path, data in before.items())
    assert workshop.run(*words).status == 0


@pytest.mark.long
def test_every_trial_can_be_found_again(workshop: Workshop, reviewed: Path) -> None:
    frame = pl.read_parquet(workshop.home / "store" / "*.parquet")
    healthy = frame.filter(pl.col("verdict").is_in(["pass", "fast"]))
    assert healthy.height > 0
    assert set(healthy["t_max"].list.len()) == {5}
