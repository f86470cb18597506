"""``./plumbline agree --bindings`` on real MPIs, and the faults that make a language look fast."""

import json
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.extensions.agreement.bindings import ROUNDS, BindingsResult, format_bindings, measure_mpi
from postprocess.extensions.papers.asides import load_languages
from postprocess.references.reference_file import load_references, locate_references
from site_configs.common import work_directory
from site_configs.mpi.exchange import Program
from site_configs.mpi.languages import LANGUAGES, SOURCES, Bench, Language, prepare_c, prepare_mpi4py
from tests.support.debian_fortran import DebianFortran, Missing, unpack_fortran
from tests.support.factories.stated_references import restate_references
from tests.support.faults import plants
from tests.support.mpi import find_mpi
from tests.support.plumbline_runner import LIMIT, Workshop

FAMILIES = ("mpich", "openmpi")  #: always there


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    return Bench(find_mpi("mpich"), tmp_path, work_directory() / "mpi")


@pytest.mark.long
def test_python_is_measured_with_two_mpis(workshop: Workshop, tmp_path: Path) -> None:
    file = tmp_path / "bindings.json"
    names = [find_mpi(family).name for family in FAMILIES]
    few = ("--launches", "3", "--bytes", "8", "--environment", ",".join(names))
    ended = workshop.run("agree", "--bindings", "mpi4py", *few, "--json", str(file)).expect(0)
    found = json.loads(file.read_text())
    languages = {each.name for each in LANGUAGES if each.name.startswith(("c", "mpi4py"))}
    for name in names:
        rows = [row for row in found["rows"] if row["environment"] == name]
        assert {row["language"] for row in rows} == languages
        assert all(row["low"] <= row["ratio"] <= row["high"] for row in rows)
        levels = {row["language"]: row["level"] for row in rows}
        assert levels["mpi4py-buffers-single"] == levels["c"] == "single"
        assert levels["mpi4py-buffers-default"] == "multiple"
    assert "8 comparisons with C, 0 skipped, 0 errors" in ended.said
    read = load_languages(workshop.home)  # as the papers' pages read it
    assert {(row.environment, row.language) for row in read} == {
        (name, language) for name in names for language in languages
    }


@pytest.mark.long
@plants("lost", "SIGTERM, and SIGINT, in the midst of the rounds", "`agree --bindings`", "", 0,
        "4 comparisons with C, 0 skipped, 0 errors")  # fmt: skip
def test_what_was_measured_before_a_signal_is_shown_and_gone_on_with(workshop: Workshop, declared) -> None:
    words = ("agree", "--bindings", "mpi4py", "--launches", "6", "--bytes", "8,1000")
    words = (*words, "--environment", find_name("mpich"))
    before = {*workshop.home.glob(f"bindings/*{ROUNDS}")}
    for number, status, least in ((signal.SIGTERM, 143, 3), (signal.SIGINT, 130, 4)):
        process = workshop.start(*words)
        deadline = time.monotonic() + LIMIT
        while time.monotonic() < deadline and process.poll() is None:
            files = {*workshop.home.glob(f"bindings/*{ROUNDS}")} - before
            if any(file.read_bytes().count(b"\n") > least for file in files):
                break
            time.sleep(0.02)
        process.send_signal(number)
        output, errors = process.communicate(timeout=LIMIT)
        assert process.returncode == status, output + errors
        assert "C again" in output and "errors\ncut off;" in output, output
        assert output.rstrip().endswith(f" ./plumbline {' '.join(words)}"), output
        assert "Traceback" not in errors
    (file,) = files
    ended = workshop.run(*words)
    declared.check((), ended.status, [ended.output])
    assert f"going on with {file}: " in ended.said
    assert {row["launches"] for row in json.loads(file.with_suffix(".json").read_text())["rows"]} == {6}


def require(*programs: str) -> None:
    for program in programs:
        if shutil.which(program) is None:
            pytest.skip(f"no {program} is on PATH: a binding cannot be tried")


def find_name(family: str) -> str:
    try:
        return find_mpi(family).name
    except StopIteration:
        pytest.skip(f"no {family} is here: its binding cannot be tried")


@pytest.fixture(scope="module")
def fortran(tmp_path_factory: pytest.TempPathFactory) -> DebianFortran:
    try:
        return unpack_fortran(tmp_path_factory.mktemp("fortran"))
    except Missing as why:
        pytest.skip(f"Fortran cannot be tried: {why}")


@pytest.mark.long
def test_c_against_fortran_is_on_the_page(fortran: DebianFortran, tmp_path: Path) -> None:
    """By both modules of two MPIs, as Debian has them."""
    own = Workshop(tmp_path / "home", path=str(fortran.bin))
    mpis = ",".join(str(path) for path in fortran.prefixes.values())
    words = ("--launches", "3", "--bytes", "8", "--mpis", mpis)
    own.run("agree", "--bindings", "fortran", *words).expect(0)
    rows = [row for row in load_languages(own.home) if row.language.startswith("fortran")]
    found = {(row.environment.partition("-")[0], row.language) for row in rows}
    assert found == {(family, f"fortran-{module}") for family in FAMILIES for module in ("mpi", "mpi_f08")}
    assert all(row.launches == 3 and row.low <= row.ratio <= row.high and row.control for row in rows)
    page = own.run("papers", "--paper", "rus").expect(0).output
    lines = page.partition("C against Fortran")[2].splitlines()
    assert sum("Fortran mpi" in line for line in lines) == len(rows) == 20


@pytest.mark.long
@pytest.mark.parametrize(
    ("language", "paper", "title"),
    [
        ("java-intel", "taboada", "Java, Intel's binding"),
        ("java-mpj", "taboada", "Java, MPJ Express (threads)"),
        ("fortran-mpi", "rus", "Fortran mpi"),
    ],
)
def test_a_binding_that_intel_mpi_gives_is_on_the_page(
    language: str, paper: str, title: str, workshop: Workshop, request: pytest.FixtureRequest
) -> None:
    name = find_name("intel-mpi")
    if language.startswith("fortran"):
        workshop = replace(workshop, path=str(request.getfixturevalue("fortran").bin))
    else:
        require("java", "javac")
    kind = language.partition("-")[0]
    known = {(row.environment, row.language) for row in load_languages(workshop.home)}
    if (name, language) not in known:  # another of its kind measured it
        few = ("--launches", "3", "--bytes", "8", "--environment", name)
        workshop.run("agree", "--bindings", kind, *few).expect(0)
    rows = [row for row in load_languages(workshop.home) if (row.environment, row.language) == (name, language)]
    cases = {("pingpong", 8), ("bcast", 8), ("allreduce", 8), ("alltoall", 8), ("barrier", 0)}
    assert {(row.routine, row.bytes) for row in rows} == cases
    page = workshop.run("papers", "--paper", paper).expect(0).output
    assert sum(title in line for line in page.splitlines()) >= len(cases), page


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_rust_is_measured_with_two_mpis(family: str, bench: Bench) -> None:
    require("cargo")
    result = BindingsResult("", 1)
    languages = [language for language in LANGUAGES if language.name in ("c", "rust")]
    measure_mpi(replace(bench, mpi=find_mpi(family)), languages, [8], 3, result, str)
    assert not result.failures
    if result.skipped:  # the crate comes from a registry
        pytest.skip(f"Rust's binding cannot be had: {result.skipped}")
    assert {row.language for row in result.rows} == {"c", "rust"}


def measure_planted(bench: Bench, prepare: Callable[[Bench], Program]) -> BindingsResult:
    result = BindingsResult("", 1)
    languages = [Language("c", "C", prepare_c), Language("planted", "planted", prepare)]
    measure_mpi(bench, languages, [8], 3, result, str)
    return result


@plants("data", "the wrong buffer, passed to a broadcast", "a language of `agree --bindings`", "", 1,
        "error: …: planted: wrong data: bcast of 8 B: … received")  # fmt: skip
def test_wrong_data_is_an_error(bench: Bench, declared) -> None:
    source = bench.folder / "wrong.py"
    right = (SOURCES / "exchange.py").read_text()
    source.write_text(right.replace("world.Bcast(buffer, 0)", "world.Bcast(out, 0)"))

    def prepare(bench: Bench) -> Program:
        sound = prepare_mpi4py(bench, "buffers", "single")
        python, isolated, _, *words = sound.command
        return replace(sound, command=(python, isolated, str(source), *words))

    result = measure_planted(bench, prepare)
    declared.check((), result.status, [format_bindings(result)])
    assert {row.language for row in result.rows} == {"c"}


@plants("stale", "a library of another version than was found by the set-up",
        "a language of `agree --bindings`", "", 1,
        "error: …: planted: wrong library: it ran on MPICH Version: …, not on MPICH Version: 1")  # fmt: skip
def test_another_library_is_an_error(bench: Bench, declared) -> None:
    named = replace(bench, mpi=replace(bench.mpi, library="MPICH Version: 1.2.3"))
    result = measure_planted(named, lambda bench: prepare_mpi4py(bench, "buffers", "single"))
    declared.check((), result.status, [format_bindings(result)])


@plants("environment", "Open MPI's library under MPICH's launcher",
        "a language of `agree --bindings`", "", 1,
        "error: …: planted: world of 1, not of 2: the launcher does not belong to the library")  # fmt: skip
def test_a_world_of_one_is_an_error(bench: Bench, tmp_path: Path, declared) -> None:
    own = tmp_path / "openmpi"
    own.mkdir()
    other = replace(bench, mpi=find_mpi("openmpi"), folder=own)
    prepare_c(other)
    result = measure_planted(bench, lambda bench: prepare_mpi4py(other, "buffers", "single"))
    declared.check((), result.status, [format_bindings(result)])


def test_an_mpi_that_is_not_here_is_refused(workshop: Workshop) -> None:
    ended = workshop.run("agree", "--bindings", "all", "--environment", "none-1")
    assert ended.status == 2 and "--environment none-1" in ended.errors
    assert len(ended.errors.splitlines()) == 1


@pytest.mark.long
def test_a_list_builds_no_crate_and_a_session_tells_that_it_builds(
    workshop: Workshop, bench: Bench, tmp_path: Path
) -> None:
    called = tmp_path / "called"
    cargo = tmp_path / "bin" / "cargo"
    cargo.parent.mkdir()
    cargo.write_text(f"#!/bin/sh\ntouch {called}\necho no registry >&2\nexit 101\n")
    cargo.chmod(0o755)
    clang = bench.unpack_wheel("libclang")
    home = tmp_path / "home"
    fresh = Workshop(home, path=str(cargo.parent))
    home.joinpath("mpi").unlink()
    home.joinpath("mpi", "bindings").mkdir(parents=True)
    for path in bench.lasting.iterdir():
        if path.name != "bindings":
            home.joinpath("mpi", path.name).symlink_to(path)
    home.joinpath("mpi", "bindings", clang.name).symlink_to(clang)
    name = bench.mpi.name
    words = ("--program", "bindings", "--routine", "pingpong.rust", "--bytes", "8", "--environment", name)
    listed = fresh.run("list", *words).expect(0)
    assert "pingpong.rust" in listed.said and "left out: 1 case" not in listed.said
    assert not called.exists()
    ended = fresh.measure(*words)
    assert called.exists() and f"building the crate mpi for {name}" in ended.said, ended.output
    (case,) = ended.summary["cases"]
    assert case["verdict"] == "skipped" and "no registry" in case["reason"]


PICKLED = "pingpong.mpi4py-pickled-single"
CENTER, SPREAD = 1.0, 0.1  #: of a ping-pong in C, in seconds, and of the logarithm of each value
SESSION = ("--program", "bindings", "--routine", f"pingpong.c,{PICKLED}", "--environment")
SLOW = """
import pickle, time
_dumps = pickle.dumps
def dumps(*words, **named):
    time.sleep(0.0003)
    return _dumps(*words, **named)
pickle.dumps = dumps
"""
WRONG = """
import pickle
_loads = pickle.loads
def loads(*words, **named):
    found = _loads(*words, **named)
    return found[::-1] if hasattr(found, "shape") and found.size > 2 else found
pickle.loads = loads
"""


@pytest.fixture
def package(workshop: Workshop, bench: Bench) -> Iterator[Path]:
    """The start of mpi4py in a work directory that has it for itself, to be changed."""
    real, own = bench.unpack_wheel("mpi4py"), workshop.home / "mpi"
    shared = own.readlink()
    own.unlink()
    own.mkdir()
    for path in bench.lasting.iterdir():
        if path.name != "bindings":
            (own / path.name).symlink_to(path)
    shutil.copytree(real, own / "bindings" / real.name, symlinks=True)
    (found,) = own.glob("bindings/*/lib/python*/site-packages/mpi4py/__init__.py")
    yield found
    shutil.rmtree(own)
    own.symlink_to(shared)


@pytest.mark.long
@plants("speed", "a sleep in every pickle", "a language of `--program bindings`", "regressed", 1,
        "x C is … times as slow as its reference …")  # fmt: skip
def test_a_language_is_judged_by_its_time_over_that_in_c(workshop: Workshop, package: Path, declared) -> None:
    """By references that no other work contradicts: the sleep makes a ping-pong ten times as slow and more."""
    name, root = find_mpi("mpich").name, workshop.home / "languages"
    words = (*SESSION, name, "--bytes", "1000")
    workshop.run("calibrate", *words, "--launches", "1", "--output", str(root)).expect(0)
    path = locate_references(root, "local", "cpu", name)
    pickled = {
        case: each.center
        for case, each in load_references(path, "local", "cpu", name).items()
        if case.routine == PICKLED
    }
    restate_references(path, CENTER, SPREAD, pickled)
    package.write_text(package.read_text() + SLOW)
    ended = workshop.measure(*words, "--references", str(root))
    shown = {case["routine"]: (case["unit"], case["verdict"]) for case in ended.summary["cases"]}
    assert {routine: unit for routine, (unit, _) in shown.items()} == {"pingpong.c": "s", PICKLED: "x C"}
    assert shown["pingpong.c"][1] == "fast"
    assert "not verified" not in ended.said + ended.errors
    declared.check_session(ended, routine=PICKLED)


@pytest.mark.long
@plants("environment", "`LD_LIBRARY_PATH` with another build of an MPI", "`--set-env` of `--program bindings`",
        "skipped", 1, "--set-env …:LD_LIBRARY_PATH: other languages name their library themselves")  # fmt: skip
def test_c_runs_on_no_other_build_than_its_languages(workshop: Workshop, tmp_path: Path, declared) -> None:
    """Of one version, no text tells them apart; the time over that in C would be of two libraries."""
    name = find_mpi("mpich").name
    words = (*SESSION, name, "--bytes", "100000", "--set-env", f"{name}:LD_LIBRARY_PATH={tmp_path}", "--strict")
    declared.check_session(workshop.measure(*words))


@pytest.mark.long
@plants("data", "the numbers of every pickle, turned around", "a language of `--program bindings`",
        "incorrect", 1, "wrong data: pingpong of 10 kB: … received")  # fmt: skip
def test_wrong_data_of_a_language_is_of_that_language_alone(
    workshop: Workshop, package: Path, declared
) -> None:
    package.write_text(package.read_text() + WRONG)
    ended = workshop.measure(*SESSION, find_mpi("mpich").name, "--bytes", "10000", "--strict")
    assert {case["verdict"] for case in ended.summary["cases"] if case["routine"] == "pingpong.c"} == {
        "no-reference"
    }
    declared.check_session(ended, routine=PICKLED)
