"""Planted faults, end to end, on real MPIs: each safeguard is seen to work, and which verdict it gives."""

import json
import math
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl
import pytest

from postprocess.base.processes import find_processes
from postprocess.model.case import Case
from postprocess.references.catalog import load_catalog
from postprocess.references.reference_file import locate_references
from postprocess.stats.detection import compute_gross_distance
from site_configs.schema.variables import SESSION
from tests.support.factories.stated_references import restate_references
from tests.support.faults import Declared, each_of, plants
from tests.support.faulty_site import plant, write_faulty_site
from tests.support.mpi import Installation, fault_library, of_family
from tests.support.plumbline_runner import COMPILE_ONCE, Ended, Workshop

FEW = ("--program", "mpicost", "--routine", "bcast,reduce_sum", "--trials", "5")
SHORT = ("--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--trials", "5")
FAMILIES = ["mpich", pytest.param("openmpi", marks=pytest.mark.long)]
# fmt: off
#: Of the library in front of the MPI: the environment of its name has no other fault.
FAULTS = {
    "hang": plants("programs", "a broadcast that never returns on one rank", "MPI",
                   "timeout", 1, "no end within 10 s"),
    "early": plants("programs", "SIGSEGV before `MPI_Init`", "mpicost",
                    "crashed", 1, "the program ended with exit code"),
    "crash": plants("programs", "SIGSEGV of one rank in a broadcast", "MPI",
                    "crashed", 1, "the program ended with exit code"),
    "late": plants("programs", "SIGSEGV in `MPI_Finalize`, after all results", "MPI",
                   "crashed", 1, "the program ended with exit code"),
    "exit": plants("programs", "exit code 9 after all results", "mpicost",
                   "crashed", 1, "the program ended with exit code 9"),
    "corrupt": plants("data", "one wrong byte of each broadcast", "MPI",
                      "incorrect", 1, "wrong data: bcast with 8 bytes: rank 1 received "),
}
#: Whether a slowdown lasts.
DELAYS = {
    True: plants("speed", "a delay beyond the gross limit, in every launch", "broadcasts of 1 MB",
                 "regressed", 1, "; so were 5 of 5 fresh launches: "),
    False: plants("speed", "a delay beyond the gross limit, in one launch", "broadcasts of 1 MB",
                  "cleared", 0, "2 of 2 fresh launches were not slow: "),
}
#: Folders of the work directory, and how much there is room for.
FULL = {
    ("sessions", "64k"): plants("lost", "a file system with 64 kB", "the folder of sessions",
                                "", 2, "No space left on device"),
    ("store", "8k"): plants("lost", "a file system with 8 kB", "the folder of the store",
                            "", 2, "No space left on device"),
}
SELECTIONS = {
    ("--environment", "no-such-mpi"): plants(
        "use", "an environment that is not there", "`--environment`", "", 2, "is not an environment here; "),
    ("--routine", "no_such_routine"): plants(
        "use", "a routine that is not there", "`--routine`", "", 2, "is not a routine of any check"),
    ("--processes", "1024"): plants(
        "use", "more processes than there are cores", "`--processes`", "", 2, "matches no case"),
}
# fmt: on
CENTER = 5e-2  #: seconds; of references that say what no noise of a shared machine contradicts,
SPREAD = 0.1  #: with this spread on the logarithm: the band ends at 0.06 s, the gross limit at 0.11 s


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
    workshop.run("calibrate", "--environment", names, *FEW, *loaded, *options).expect(0)
    for name in names.split(","):
        restate_references(locate_references(root, "local", "cpu", name), CENTER, SPREAD)
    return root


def planted(mpi: Installation, library: Path, fault: str, **more: object) -> list[str]:
    """Options that plant a fault into the launches of one environment."""
    variables = {"LD_PRELOAD": library, "PLANTED_FAULT": fault}
    variables |= {f"PLANTED_{name.upper()}": value for name, value in more.items()}
    return plant({mpi.name: variables})


def test_healthy_machine_passes_and_reframe_has_the_same_bands(workshop, reviewed, mpich, library):
    options = ("--environment", mpich.name, *FEW, *planted(mpich, library, "none"))
    ended = workshop.measure(*options, "--launches", "1", "--references", str(reviewed)).expect(0)
    assert set(ended.verdicts().values()) <= {"pass", "fast"}
    assert len(ended.verdicts()) == 6
    cases = {f"local:cpu:{Case.from_key(e['key']).variable}": e for e in ended.summary["cases"]}
    session = workshop.home / "sessions" / ended.summary["session"]
    (run,) = json.loads((session / "reframe" / "report.json").read_text())["runs"]
    asserted = {
        name: told[1] * (1 + told[3])
        for test in run["testcases"]
        for name, told in (test["perfvalues"] or {}).items()
    }
    assert asserted == pytest.approx({name: each["band"][1] for name, each in cases.items()})


def beyond_all(reviewed: Path, mpi: Installation) -> float:
    """Seconds beyond the gross limits of all references of an MPI."""
    (known,) = load_catalog([reviewed], [("local:cpu", mpi.name)]).sets.values()
    distances = [compute_gross_distance(reference, 1) for reference in known.references.values()]
    return 2 * CENTER * math.exp(max(distances))


@pytest.mark.parametrize("lasting", each_of(DELAYS))
def test_slowdown_is_regressed_only_if_fresh_launches_repeat_it(
    workshop, reviewed, mpich, library, tmp_path, lasting, declared
):
    beyond = beyond_all(reviewed, mpich)
    mark = tmp_path / "mark"
    mark.touch()
    once = {} if lasting else {"once": mark}
    delay = planted(mpich, library, "delay", bytes=1_000_000, seconds=beyond, **once)
    options = ("--environment", mpich.name, *FEW, *delay, "--references", str(reviewed))
    ended = workshop.measure(*options, "--launches", "1", command="nightly")
    expected = {f"{mpich.name} bcast 1000000": "regressed" if lasting else "cleared"}
    found = ended.verdicts()
    assert {name: word for name, word in found.items() if word not in ("pass", "fast")} == expected
    assert ended.status == (1 if lasting else 0), ended.output
    (reason,) = ended.reasons() - {""} - {r for r in ended.reasons() if "times as fast" in r}
    declared.check([found[f"{mpich.name} bcast 1000000"]], ended.status, [reason])
    assert mark.exists() == lasting
    assert "slow: measuring 1 case again: bcast 1 MB" in ended.said


@plants("speed", "a delay beyond the gross limit, in one launch of three", "broadcasts of 1 MB",
        "pass or fast", 0, "(exit status 0)")  # fmt: skip
@pytest.mark.long
def test_one_slow_launch_of_three_is_outvoted(workshop, reviewed, mpich, library, tmp_path, declared):
    """ReFrame fails that launch alone; the median of the three, which Plumbline judges, is healthy."""
    mark = tmp_path / "mark"
    mark.touch()
    beyond = beyond_all(reviewed, mpich)
    delay = planted(mpich, library, "delay", bytes=1_000_000, seconds=beyond, once=mark)
    options = ("--environment", mpich.name, *FEW, *delay, "--references", str(reviewed))
    ended = workshop.measure(*options, "--launches", "3").expect(0)
    assert not mark.exists()
    assert {case["launches"] for case in ended.summary["cases"]} == {3}
    said = (workshop.home / "sessions" / ended.summary["session"] / "reframe" / "output.txt").read_text()
    assert said.count("[     FAIL ]") == 1
    assert "measuring" not in ended.said
    declared.check(ended.verdicts().values(), ended.status, [ended.output])


@pytest.fixture(scope="module")
def faulty(workshop: Workshop, mpich: Installation, library: Path, tmp_path_factory) -> Ended:
    """A session with each of these faults. Strict: nothing is calibrated before."""
    site = write_faulty_site(tmp_path_factory.mktemp("faulty") / "faulty.py", mpich, FAULTS)
    faults = {name: {"LD_PRELOAD": library, "PLANTED_FAULT": name} for name in FAULTS}
    words = (*SHORT, "--processes", "2", "--time-limit", "10", "--strict", *plant(faults))
    return workshop.measure("--site", str(site), *words)


@pytest.mark.long
@pytest.mark.parametrize("fault", each_of(FAULTS))
def test_fault_has_its_verdict(workshop: Workshop, faulty: Ended, fault: str, declared: Declared):
    declared.check_session(faulty, environment=fault)
    assert not find_processes(SESSION, str(workshop.home), prefix=True)  # not even of what hung


@plants("data", "a wrong byte of each broadcast, beside sums that are right", "MPI", "incorrect", 1,
        "wrong data: bcast with … bytes: rank 1 received … in element 0 instead of …, ")  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
def test_wrong_data_fails_its_own_cases(workshop, reviewed, libraries, family, declared):
    """Every broadcast damages a byte. The sums beside it are verified, judged and good."""
    mpi = of_family(family)
    options = [*FEW, *planted(mpi, libraries[mpi.name], "corrupt"), "--references", str(reviewed)]
    ended = workshop.measure("--environment", mpi.name, *options, command="nightly")
    verdicts = ended.verdicts()
    assert len(verdicts) == 6
    for name, verdict in verdicts.items():
        assert verdict in ({"incorrect"} if " bcast " in name else {"pass", "fast"}), name
    assert ended.status == 1
    declared.check_session(ended, routine="bcast")
    found = len({case["reason"] for case in ended.summary["cases"] if case["routine"] == "bcast"})
    assert found == 3


@plants("stale", "a clock at half speed, as a library in front of the MPI", "mpicost",
        "not-comparable", 1,
        "is loaded in front of the MPI, and faulty_mpi-")  # fmt: skip
@pytest.mark.parametrize("family", FAMILIES)
def test_slow_clock_in_front_of_the_mpi_is_not_comparable(workshop, reviewed, family, tmp_path, declared):
    """Every time is half as long as it is: four cases were fast, and the night was well."""
    mpi = of_family(family)
    clock = fault_library(mpi, tmp_path, "half_speed")
    options = (*SHORT, f"--set-env={mpi.name}:LD_PRELOAD={clock}", "--references", str(reviewed))
    ended = workshop.measure("--environment", mpi.name, *options, command="nightly")
    (reason,) = ended.reasons()
    assert reason.startswith(f"{clock.name} (")
    declared.check_session(ended)


@plants("builds", "a compiler that refuses a source, for one MPI of two", "the build of mpicost",
        "incomplete", 1, "the build failed")  # fmt: skip
@pytest.mark.long
def test_failed_build_names_its_mpi_and_spares_the_others(
    reviewed, mpich, openmpi, libraries, tmp_path, declared
):
    """The compiler of one MPI refuses one of the suite's own sources."""
    compiler = tmp_path / "compiler"
    compiler.write_text(
        f'#!/bin/sh\ncase "$*" in *mpich*routines.c*) exit 1 ;; esac\nexec {COMPILE_ONCE} "$@"\n'
    )
    compiler.chmod(0o755)
    fresh = Workshop(tmp_path / "home")
    names = f"{mpich.name},{openmpi.name}"
    options = planted(openmpi, libraries[openmpi.name], "none")
    words = ("--environment", names, *SHORT, *options, "--references", str(reviewed))
    ended = fresh.measure(*words, CMAKE_C_COMPILER_LAUNCHER=str(compiler))
    verdicts = ended.verdicts()
    assert verdicts[f"{openmpi.name} bcast 8"] in {"pass", "fast"}
    (failed,) = (case for case in ended.summary["cases"] if case["environment"] == mpich.name)
    declared.check([failed["verdict"]], ended.status, [failed["reason"]])


@plants("references", "no reference, in a strict run", "references of a session", "no-reference", 1,
        "no reference")  # fmt: skip
@pytest.mark.long
def test_missing_reference_fails_a_strict_run(workshop: Workshop, mpich: Installation, declared):
    words = ["--program", "mpicost", "--routine", "barrier", "--trials", "11", "--strict"]
    ended = workshop.measure("--environment", mpich.name, *words)
    declared.check_session(ended)


@plants("references", "another unit in one row", "a reference file", "", 2, ".tsv: row …: unit")
@pytest.mark.long
def test_damaged_reference_stops_before_anything_runs(workshop, reviewed, mpich, tmp_path, declared):
    root = tmp_path / "references"
    shutil.copytree(reviewed, root)
    path = locate_references(root, "local", "cpu", mpich.name)
    path.write_text(path.read_text().replace("\ts\t", "\tus\t", 1))
    ended = workshop.run("run", "--environment", mpich.name, *SHORT, "--references", str(root))
    assert str(path) in ended.errors
    declared.check_refusal(ended)


@pytest.mark.long
@pytest.mark.parametrize("words", each_of(SELECTIONS))
def test_selection_that_matches_nothing_is_refused(workshop, words, declared):
    declared.check_refusal(workshop.run("run", *words))


@plants("lost", "SIGKILL of the driver while a program hangs", "a session", "pass or fast", 0,
        "(exit status 0)")  # fmt: skip
@pytest.mark.long
def test_driver_killed_in_the_middle(workshop, reviewed, mpich, library, declared):
    """The next command ends what the killed one left running, and measures."""
    before = {path: path.read_bytes() for path in (workshop.home / "store").glob("*.parquet")}
    assert before
    options = [*planted(mpich, library, "hang"), "--references", str(reviewed)]
    process = workshop.start("run", "--environment", mpich.name, *SHORT, *options)
    wait_for_program(workshop)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    options = [*planted(mpich, library, "none"), "--references", str(reviewed)]
    ended = workshop.measure("--environment", mpich.name, *SHORT, *options)
    declared.check(ended.verdicts().values(), ended.status, [ended.output])
    assert not find_processes(SESSION, str(workshop.home), prefix=True)
    assert all(path.read_bytes() == data for path, data in before.items())


@plants("use", "a second night while the first one runs", "the work directory", "", 2,
        "in use by process …; wait for it, or use another work directory (PLUMBLINE_HOME)")  # fmt: skip
@pytest.mark.long
def test_two_at_once_in_one_work_directory(workshop, reviewed, mpich, library, declared):
    options = [*planted(mpich, library, "hang"), "--references", str(reviewed)]
    first = workshop.start("run", "--environment", mpich.name, *SHORT, *options)
    try:
        wait_for_program(workshop)
        second = workshop.run("nightly")
        assert f"in use by process {first.pid}" in second.errors
        declared.check_refusal(second)
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
@pytest.mark.parametrize("room", each_of(FULL))
def test_full_disk_is_one_line_and_loses_nothing(workshop, reviewed, mpich, library, room, declared):
    directory, size = room
    words = ["run", "--environment", mpich.name, *SHORT, "--references", str(reviewed)]
    words += planted(mpich, library, "none")
    before = {path: path.read_bytes() for path in (workshop.home / "store").glob("*.parquet")}
    with nearly_full(workshop.home / directory, size):
        ended = workshop.run(*words)
        half = list((workshop.home / directory).glob("*.parquet"))
    declared.check_refusal(ended)
    assert not half
    assert before and all(path.read_bytes() == data for path, data in before.items())
    assert workshop.run(*words).status == 0


@pytest.mark.long
def test_every_trial_can_be_found_again(workshop: Workshop, reviewed: Path) -> None:
    frame = pl.read_parquet(workshop.home / "store" / "*.parquet")
    healthy = frame.filter(pl.col("verdict").is_in(["pass", "fast"]))
    assert healthy.height > 0
    assert set(healthy["t_max"].list.len()) == {5}
