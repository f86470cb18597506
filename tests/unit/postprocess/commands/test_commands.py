"""What small commands do that is theirs alone: ``where``, ``report``, ``setup``, ``doctor`` and ``test``."""

import argparse
import os
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.commands import measure, setup, tests
from postprocess.commands.history import Night, describe_history, draw_sparkline, explain_no_match, is_meant
from postprocess.commands.measure import choose_failed
from postprocess.commands.setup import describe_machine, print_doctor_page
from postprocess.main import build_parser, main
from postprocess.model.case import Case
from postprocess.model.verdict import Verdict
from postprocess.results.store import write_session
from postprocess.setup import PreparedMachine
from site_configs.mpi import inventory
from site_configs.mpi.family import Unusable
from site_configs.mpi.inventory import Inventory, inventory_file
from site_configs.topology.machine import Cache
from spack_envs.installation import BuiltBinary, write_program
from tests.support.factories import report as samples
from tests.support.factories.setup import MACHINE, SPACK, make_mpi
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

MPICH = make_mpi("mpich-5_0_2")

pytestmark = pytest.mark.usefixtures("sigterm_handler")


@pytest.fixture
def command(work: WorkDirectory, capsys: pytest.CaptureFixture[str]):
    """Run a command line; its exit status, its output and its errors."""

    def run(*words: str) -> tuple[int, str, str]:
        status = main(str(work.source), str(work.root), words)
        return status, *capsys.readouterr()

    return run


def refused(ended: tuple[int, str, str]) -> str:
    """The one line of a command that was refused."""
    status, output, errors = ended
    assert (status, output) == (2, "")
    assert errors.startswith("plumbline: ")
    assert errors.count("\n") == 1
    return errors.removeprefix("plumbline: ").rstrip("\n")


# The work directory, and files that are written in the end.


def test_a_work_directory_that_is_in_use_is_named_with_its_holder(command, work):
    with work.held():
        line = refused(command("nightly"))
    assert line.startswith(f"{work.root}: in use by process {os.getpid()}; ")


@pytest.mark.parametrize("words", [["nightly"], ["setup"], ["list"], ["test"]])
def test_a_work_directory_that_cannot_be_is_one_line(words, tmp_path: Path, capsys):
    (tmp_path / "file").write_text("")
    status = main(str(ROOT), str(tmp_path / "file" / "home"), words)
    assert str(tmp_path / "file") in refused((status, *capsys.readouterr()))


def test_looking_before_measuring_leaves_no_file(command, tmp_path: Path, monkeypatch):
    monkeypatch.setattr(measure, "run_nightly", lambda *_: 0)
    path, link = tmp_path / "summary.json", tmp_path / "link"
    link.symlink_to(path)
    for each in (path, link):
        assert command("nightly", "--json", str(each))[0] == 0
        assert not path.exists() and link.is_symlink()


# where


@pytest.fixture
def known(work: WorkDirectory) -> None:
    """An inventory with one MPI, for which mpicost was built."""
    inventory.save_inventory(Inventory(MACHINE, (MPICH,), ()), inventory_file(work.root))


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("program", "path"), [("mpicc", MPICH.mpicc), ("mpiexec", MPICH.mpiexec), ("mpicost", "/built/mpicost")]
)
def test_where_a_program_is(command, work: WorkDirectory, program: str, path: str):
    write_program(work.root, BuiltBinary(MPICH.name, "mpicost", "/built/mpicost", "cmake"))
    assert command("where", program, "--environment", MPICH.name) == (0, f"{path}\n", "")


@pytest.mark.usefixtures("known")
@pytest.mark.parametrize(
    ("program", "environment", "said"),
    [
        ("mpicc", "a\nb", "--environment a\\nb: is not an environment here; choose from mpich-5_0_2"),
        ("mpicost", "mpich-5_0_2", "./plumbline run --environment mpich-5_0_2 builds it"),
    ],
)
def test_what_is_not_there_is_refused_with_what_is_or_the_fix(command, program, environment, said):
    assert refused(command("where", program, "--environment", environment)).endswith(said)


@pytest.mark.parametrize("text", [None, "", "{", "[]", "{}", '{"schema": 1}', '{"schema": 0}'])
def test_without_an_inventory_the_fix_is_named(command, work: WorkDirectory, text: str | None):
    if text is not None:
        work.root.mkdir()
        inventory_file(work.root).write_text(text)
    line = refused(command("where", "mpicc", "--environment", MPICH.name))
    assert line.startswith(f"{inventory_file(work.root)}: no inventory of this machine: ")


# report


@pytest.fixture
def directory(work: WorkDirectory) -> Path:
    """A session with a slow case that came to a summary; nothing of it is in the store."""
    return slow_night().write(work.sessions / samples.SESSION)


def slow_night() -> samples.Night:
    return samples.bad_night([case for case in samples.few_cases() if case.routine == "bcast"])


def test_the_report_of_the_last_session_ends_as_it_did(command, work, directory: Path):
    write_session(work.store / f"{directory.name}.parquet", slow_night().rows)
    status, output, errors = command("report")
    assert (status, errors) == (1, "")
    pages = [directory / f"report.{form}" for form in ("md", "html")]
    assert output.splitlines()[-2:] == [str(page) for page in pages] and all(page.exists() for page in pages)


@pytest.mark.parametrize("name", [[], ["20261121T090000Z-1"], ["../.."], ["x" * 300]])
def test_a_session_without_a_summary_is_refused(command, work, name):
    (work.sessions / "20261121T090000Z-1").mkdir(parents=True)
    assert refused(command("report", *name))


def test_a_session_whose_trials_are_gone_is_refused(command, work, directory: Path):
    assert refused(command("report")).startswith(f"{work.store}/{directory.name}.parquet: ")
    assert not list(directory.glob("report.*"))


# setup and doctor


def test_setup_asks_every_mpi_again_and_shows_the_page(command, work, monkeypatch):
    calls: list[tuple] = []

    def prepare(work_, site, families, progress, fresh=False, mirror=None):
        calls.append((work_.root, site, families, fresh))
        return PreparedMachine(Inventory(MACHINE, (MPICH,), ()), None)

    monkeypatch.setattr(setup, "prepare_machine", prepare)
    status, output, errors = command("setup", "--mpis", "mpich")
    assert (status, errors) == (0, "")
    assert calls == [(work.root, "local", ["mpich"], True)]
    assert f"{MPICH.name} ({MPICH.origin}) {MPICH.mpicc}" in output


@pytest.mark.parametrize(("name", "status"), [("setup", 1), ("doctor", 0)])
def test_setup_builds_and_fails_if_something_does_not_build(command, monkeypatch, name, status):
    monkeypatch.setattr(setup, "prepare_machine", lambda *_: PreparedMachine(None, None))
    monkeypatch.setattr(setup, "build_programs", lambda *_: 2)
    ended, output, errors = command(name)
    assert (ended, errors) == (status, "")
    assert ("2 program(s) could not be built" in output) == bool(status)


LARGE = replace(
    MACHINE,
    **{"cores": 8, "hardware_threads": 16, "sockets": 2, "memory_bytes": 25_276_502_016},
    caches=(Cache(1, "Data", 32768, 2), Cache(3, "Unified", 32 * 2**20, 16)),
)


def page(prepared: PreparedMachine, progress: Progress) -> str:
    print_doctor_page(WorkDirectory(Path("/home/me/.plumbline"), Path()), prepared, progress)
    return progress.console.file.getvalue()


def test_the_page_names_the_machine_its_mpis_and_what_is_wrong(progress):
    found = Inventory(LARGE, (MPICH,), (Unusable("/usr/bin/mpicc", "path", "compiling failed"),))
    assert page(PreparedMachine(found, SPACK), progress).splitlines() == [
        "machine         n1: a processor",
        "cores           8 on 2 socket(s), 16 hardware threads",
        "caches          L1 32 KiB shared by 2, L3 32768 KiB shared by 16",
        "memory          25 GB",
        "kernel          6.1",
        "process counts  2, 4, 5, 8",
        "Spack           1.1.0 (PATH: /bin/spack)",
        "work directory  /home/me/.plumbline",
        "mpich-5_0_2 (path) /p/mpicc",
        "    says library",
        "    IMB without Spack: none: not looked for yet",
        "not usable (path) /usr/bin/mpicc",
        "    compiling failed",
    ]


def test_without_spack_and_on_a_site_of_its_own_there_is_a_page_all_the_same(progress):
    text = page(PreparedMachine(None, None), progress)
    assert "Spack           none: see the note above" in text
    assert "process counts  the site's own, like its MPIs: ./plumbline list shows them" in text
    assert "says" not in text


def test_a_machine_that_shows_little_is_described_in_words():
    facts = dict(describe_machine(replace(MACHINE, cores=1, sockets=1, caches=())))
    assert facts["caches"] == "not shown by the kernel"
    assert facts["process counts"].startswith("none: one core cannot time messages")


# test


@pytest.fixture
def pytests(monkeypatch: pytest.MonkeyPatch) -> list[SimpleNamespace]:
    """How pytest was started, which then ends with exit status 5."""
    calls: list[SimpleNamespace] = []

    def run(words, check, cwd, env):
        calls.append(SimpleNamespace(words=words, cwd=cwd, env=env))
        return SimpleNamespace(returncode=5)

    monkeypatch.setattr(tests.subprocess, "run", run)
    return calls


def test_the_tests_run_in_the_work_directory_that_was_set_up(command, work, pytests, monkeypatch):
    monkeypatch.setattr(tests, "prepare_machine", lambda *_, **__: None)
    assert command("test", "-k", "one and two")[0] == 5
    (call,) = pytests
    assert call.words == [sys.executable, "-m", "pytest", "-k", "one and two"]
    assert (call.cwd, call.env["PLUMBLINE_HOME"]) == (ROOT, str(work.root))
    assert call.env["PATH"].split(":")[0] == str(Path(sys.executable).parent)


def test_the_rest_is_what_the_short_run_has_not_passed(command, work, pytests, monkeypatch):
    """And the long tests are not part of that one, which needs no Spack either."""
    spack: list[bool] = []
    monkeypatch.setattr(tests, "prepare_machine", lambda *_, with_spack: spack.append(with_spack))
    work.root.mkdir(exist_ok=True)
    passed = work.root / tests.PASSED
    status, _, errors = command("test", "--rest")
    assert (status, pytests) == (2, [])
    assert f"{passed} is missing; use --all" in errors
    passed.write_text("of an earlier run\n")
    assert command("test")[0] == 5
    (sources,) = passed.read_text().splitlines()
    passed.write_text("of other sources\n")
    assert command("test", "--rest")[0] == 2
    passed.write_text(f"{sources}\n")
    assert command("test", "--rest")[0] == command("test", "--all")[0] == 5
    parts = [list(part) for part in tests.PARTS]
    assert [call.words[3:] for call in pytests] == [
        *([*part, f"--short={passed}"] for part in parts),
        *([*part, f"--rest={passed}"] for part in parts),
        *parts,
    ]
    assert spack == [False, True, True]
    folders = [call.env[tests.SHARED] for call in pytests]
    assert folders[0::2] == folders[1::2] and len({*folders}) == 3  # what a part has built the next one has
    assert not any(map(os.path.exists, folders))


KEY = "local:cpu:mpich-5_0_2:mpicost:bcast:evict-dissemination:2x2:1000"
CASE = Case.from_key(KEY)


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        (["bcast"], True),
        (["bcast", "mpich", "1kB"], True),
        (["1000", "2x2"], True),
        (["*:bcast:*"], True),
        (["bcas"], False),
        (["bcast", "openmpi"], False),
        (["bcast", "1KiB"], False),
    ],
)
def test_a_case_is_meant_by_parts_of_its_key(words: list[str], meant: bool):
    assert is_meant(CASE, words) == meant


def test_a_word_that_is_said_of_no_case_is_told_with_the_nearest():
    assert explain_no_match(["bcst"], [KEY]) == "bcst: is said of no stored case; did you mean bcast?"
    assert "no night is stored yet" in explain_no_match(["bcast"], [])


def test_nights_are_drawn_with_their_verdicts_below():
    nights = [
        Night("2026-11-20", "pass", "s", 1e-6, 1e-6, (0.8e-6, 1.2e-6)),
        Night("2026-11-21", "crashed", "s", None, 1e-6, None),
        Night("2026-11-22", "regressed", "s", 3e-6, 1e-6, (0.8e-6, 1.2e-6)),
    ]
    lines = list(describe_history(KEY, nights, "ascii"))
    assert lines[:3] == [KEY, "  _ #", "  .!R"]
    assert lines[3] == "  3 sessions, 2026-11-20 to 2026-11-22: 1.00 us to 3.00 us"
    assert lines[4] == "  last: regressed, 3.00 us (3.00 of its reference), band 0.800 to 1.20"


def test_small_changes_do_not_look_large():
    assert draw_sparkline([1.0, 1.01, 1.02]) in ("▄▄▅", "▄▅▅")
    assert draw_sparkline([1.0, None, 10.0]) == "▁ █"
    assert draw_sparkline([None]) == " "


@pytest.fixture
def failed(work: WorkDirectory) -> WorkDirectory:
    """A session in which two cases failed for one reason, and one for another."""
    night = samples.healthy_night(samples.few_cases()[:5])
    again = "./plumbline run --environment {} --routine {} --bytes 8 --trials 7 --set-env=a:X=1"
    lost = [("mpich", "bcast", "lost"), ("openmpi", "bcast", "lost"), ("mpich", "scan_sum", "slow")]
    told = [
        replace(
            result,
            verdict=Verdict.INCOMPLETE if reason == "lost" else Verdict.REGRESSED,
            reason=reason,
            rerun=again.format(environment, routine),
        )
        for result, (environment, routine, reason) in zip(night.results, lost, strict=False)
    ]
    night.results = [*told, *night.results[3:]]
    night.write(work.sessions / samples.SESSION)
    return work


def chosen(work: WorkDirectory, *words: str) -> argparse.Namespace:
    return choose_failed(work, build_parser().parse_args(["run", *words]))


def test_what_failed_is_run_again_with_the_options_of_then(failed: WorkDirectory):
    found = chosen(failed, "--failed", "--json", "x.json")
    assert sorted(found.environment) == ["mpich", "openmpi"]
    assert sorted(found.routine) == ["bcast", "scan_sum"]
    assert (found.bytes, found.trials, found.set_env) == ([8], 7, [("a", "X", "1")])
    assert (found.processes, found.json, found.name) == ([], Path("x.json"), "run")


def test_a_number_chooses_what_stands_under_one_reason(failed: WorkDirectory):
    first = chosen(failed, "--failed", f"{samples.SESSION}:1")
    assert (first.environment, first.routine) == (["mpich", "openmpi"], ["bcast"])
    second = chosen(failed, "--failed", "latest:2")
    assert (second.environment, second.routine) == (["mpich"], ["scan_sum"])


@plants("use", "a session, a number or an option that chooses no failed case", "`run --failed`", "", 2,
        "no finished session there; | it has groups 1 to 2; | runs cases as they were run; ")  # fmt: skip
@pytest.mark.parametrize(
    "words", [["--failed", "20200101T000000Z-1"], ["--failed", "latest:3"], ["--failed", "--routine", "bcast"]]
)
def test_what_chooses_nothing_is_refused(failed: WorkDirectory, words, declared: Declared):
    with pytest.raises(UsageError) as error:
        chosen(failed, *words)
    declared.check_error(error.value)
