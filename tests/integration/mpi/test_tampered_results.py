"""Results that arrive damaged, or that are of something else than was planned, end to end."""

import stat
import sys
from pathlib import Path

import pytest

from tests.support.faults import Declared, each_of, plants
from tests.support.faulty_site import plant, write_faulty_site
from tests.support.mpi import FAULTS, Installation, of_family
from tests.support.mpicost import program
from tests.support.plumbline_runner import Ended, Workshop

pytestmark = pytest.mark.long

SHORT = ("--program", "mpicost", "--routine", "bcast,barrier", "--trials", "5", "--processes", "2")
# fmt: off
#: A change of what mpicost wrote, made by a launcher that returns 0.
CHANGES = {
    "missing_case": plants(
        "output", "one case less, and a program that never meant to run it", "records of mpicost",
        "incomplete", 1, "missing from the output"),
    "negative_time": plants(
        "output", "a time below zero, as of a clock that ran backwards", "records of mpicost",
        "incorrect", 1, "t_max"),
    "zero_time": plants(
        "output", "a call that took no time", "records of mpicost",
        "incorrect", 1, "t_max"),
    "not_a_number": plants(
        "output", "NaN in the place of a time", "records of mpicost",
        "incorrect", 1, "NaN"),
    "better_headline": plants(
        "output", "half the headline", "records of mpicost",
        "incorrect", 1, "headline"),
    "fewer_trials": plants(
        "output", "one trial less than was asked for", "records of mpicost",
        "incorrect", 1, "trials"),
    "other_mpi": plants(
        "stale", "the name of another MPI", "records of mpicost",
        "incorrect", 1, "ran on 'Some MPI"),
    "smaller_world": plants(
        "schedulers", "worlds of one process", "records of mpicost",
        "incorrect", 1, "singleton processes instead of one MPI_COMM_WORLD"),
    "no_end": plants(
        "programs", "no end: the program stopped before it had verified all", "records of mpicost",
        "incomplete", 1, "end"),
    "truncated": plants(
        "output", "the last third lost", "records of mpicost",
        "incomplete", 1, "line"),
    "empty": plants(
        "output", "nothing", "records of mpicost",
        "incomplete", 1, "is empty"),
}
# fmt: on
#: Environments without a change: nothing is planted, or another program runs.
UNTOUCHED, OTHER = "untouched", "other_program"


@pytest.fixture(scope="module")
def site(mpich: Installation, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A site whose launcher changes the results afterwards, if told to."""
    tool = tmp_path_factory.mktemp("tampered") / "mpiexec"
    tool.write_text(launcher(mpich))
    tool.chmod(tool.stat().st_mode | stat.S_IXUSR)
    names = (*CHANGES, UNTOUCHED, OTHER)
    return write_faulty_site(tool.with_name("faulty.py"), mpich, names, launcher=[str(tool)])


def launcher(mpich: Installation) -> str:
    """A launcher that runs another program, or the real one and then changes what it wrote."""
    real, tool = mpich.mpiexec[0], FAULTS / "tamper.py"
    return f"""#!/bin/sh
for word; do case "$word" in --output=*) file="${{word#--output=}}";; esac; done
if [ -n "$file" ] && [ -n "$PLANTED_PROGRAM" ]; then
    while [ "${{1%mpicost}}" = "$1" ]; do shift; done
    shift
    exec $PLANTED_PROGRAM "$@"
fi
if [ -n "$file" ] && [ -n "$PLANTED_STALE" ]; then
    cp "$PLANTED_STALE" "$file"
    exit 0
fi
"{real}" "$@"
code=$?
if [ -n "$file" ] && [ -n "$PLANTED_CHANGE" ]; then
    "{sys.executable}" "{tool}" "$PLANTED_CHANGE" "$file"
fi
exit $code
"""


@pytest.fixture(scope="module")
def ended(workshop: Workshop, site: Path) -> Ended:
    """A session in which every environment has its fault. Strict: nothing is calibrated before."""
    other = of_family("openmpi")
    words = [f"{name}={value}" for name, value in other.env.items()]
    words += [other.mpiexec[0], "-n", "2", str(program("openmpi").build / "mpicost")]
    planted = {name: {"PLANTED_CHANGE": name} for name in CHANGES}
    planted[OTHER] = {"PLANTED_PROGRAM": " ".join(["env", *words])}
    return workshop.measure("--site", str(site), *SHORT, "--strict", *plant(planted))


@pytest.mark.parametrize("change", each_of(CHANGES))
def test_damaged_results_have_no_value(ended: Ended, change: str, declared: Declared) -> None:
    declared.check_session(ended, environment=change)


@plants("stale", "a program that was built with Open MPI", "the launcher of MPICH", "incorrect", 1,
        "Open MPI")  # fmt: skip
def test_program_of_another_mpi_is_incorrect(ended: Ended, declared: Declared) -> None:
    declared.check_session(ended, environment=OTHER)


def test_untouched_results_are_measured(ended: Ended) -> None:
    """Without references ``no-reference`` is a case that was measured and is right."""
    cases = [case for case in ended.summary["cases"] if case["environment"] == UNTOUCHED]
    assert len(cases) == 4
    assert {case["verdict"] for case in cases} == {"no-reference"}, ended.reasons()


@plants("stale", "a launcher that copies the records of an earlier launch and returns 0", "mpiexec",
        "incorrect", 1, "the records are not of this launch")  # fmt: skip
def test_records_of_an_earlier_night_are_incorrect(workshop, site, ended, declared):
    """A launcher that starts nothing and leaves what an earlier launch wrote: whole, fast and well known."""
    (earlier,) = workshop.home.glob(f"sessions/*/raw/*{UNTOUCHED}.mpicost.*.jsonl")
    chosen = ("--site", str(site), "--environment", UNTOUCHED, *SHORT)
    stale = plant({UNTOUCHED: {"PLANTED_STALE": earlier}})
    again = workshop.measure(*chosen, *stale, "--strict")
    declared.check_session(again)
    root = workshop.home / "stale"
    refused = workshop.run("calibrate", *chosen, *stale, "--launches", "2", "--output", str(root))
    assert refused.status == 1 and not list(root.rglob("*.tsv"))
