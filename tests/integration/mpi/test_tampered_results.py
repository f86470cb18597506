"""Results that arrive damaged, or that are of something else than was planned, end to end."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest

from tests.support.mpi import FAULTS, Installation, of_family
from tests.support.plumbline_runner import Ended, Workshop

pytestmark = pytest.mark.long

SHORT = ("--program", "mpicost", "--routine", "bcast,barrier", "--trials", "5")


@pytest.fixture(scope="module")
def workshop(mpich: Installation, tmp_path_factory: pytest.TempPathFactory) -> Workshop:
    """A machine whose MPICH has a launcher that changes the results afterwards, if told to."""
    directory = tmp_path_factory.mktemp("tampered")
    tools = directory / "bin"
    tools.mkdir()
    script(tools / "mpicc", f'exec "{mpich.mpicc}" "$@"')
    script(tools / "mpiexec", launcher(mpich))
    return Workshop(directory / "home", path=str(tools))


def launcher(mpich: Installation) -> str:
    """A launcher that runs another program, or the real one and then changes what it wrote."""
    real, tool = mpich.mpiexec[0], FAULTS / "tamper.py"
    return f"""
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


def script(path: Path, text: str) -> None:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture(scope="module")
def calibrated(workshop: Workshop, mpich: Installation) -> str:
    ended = workshop.run("calibrate", "--environment", mpich.name, *SHORT, "--launches", "2")
    assert ended.status == 0, ended.output + ended.errors
    return mpich.name


def changed(workshop: Workshop, environment: str, variable: str, value: str) -> Ended:
    """A measurement with one thing planted."""
    plant = f"--set-env={environment}:PLANTED_{variable}={value}"
    return workshop.measure("--environment", environment, *SHORT, plant)


@pytest.mark.parametrize(
    ("change", "verdict", "said"),
    [
        ("missing_case", "incomplete", "missing from the output"),
        ("negative_time", "incorrect", "t_max"),
        ("zero_time", "incorrect", "t_max"),
        ("not_a_number", "incorrect", "NaN"),
        ("better_headline", "incorrect", "headline"),
        ("fewer_trials", "incorrect", "trials"),
        ("other_mpi", "incorrect", "Some MPI"),
        ("smaller_world", "incorrect", "singleton processes instead of one MPI_COMM_WORLD"),
        ("no_end", "incomplete", "end"),
        ("truncated", "incomplete", ""),
        ("empty", "incomplete", ""),
    ],
)
def test_damaged_results_never_pass(
    workshop: Workshop, calibrated: str, change: str, verdict: str, said: str
) -> None:
    ended = changed(workshop, calibrated, "CHANGE", change)
    assert set(ended.verdicts().values()) == {verdict}, ended.reasons()
    assert all(said in reason for reason in ended.reasons()), ended.reasons()
    assert ended.status == 1


def test_program_of_another_mpi_is_incorrect(workshop: Workshop, calibrated: str) -> None:
    other = of_family("openmpi")
    few = ("--program", "mpicost", "--routine", "barrier", "--trials", "5")
    built = workshop.run("run", "--environment", other.name, *few)
    assert built.status == 0, built.output + built.errors
    program = workshop.run("where", "mpicost", "--environment", other.name).output.strip()
    command = f"env {' '.join(f'{name}={value}' for name, value in other.env.items())}"
    ended = changed(workshop, calibrated, "PROGRAM", f"{command} {other.mpiexec[0]} -n 2 {program}")
    assert set(ended.verdicts().values()) == {"incorrect"}, ended.reasons()
    assert all("Open MPI" in reason for reason in ended.reasons()), ended.reasons()


def test_records_of_an_earlier_night_are_incorrect(workshop: Workshop, calibrated: str) -> None:
    """A launcher that starts nothing and leaves what an earlier launch wrote: whole, fast and well known."""
    (earlier, *_) = sorted(workshop.home.glob(f"sessions/*/raw/*{calibrated}.mpicost.*.jsonl"))
    plant = f"--set-env={calibrated}:PLANTED_STALE={earlier}"
    layout = earlier.name.split(".")[-3].split("x")
    chosen = ("--environment", calibrated, "--processes", layout[0], *SHORT, plant)
    ended = workshop.measure(*chosen)
    assert set(ended.verdicts().values()) == {"incorrect"}, ended.reasons()
    assert all("the records are not of this launch" in each for each in ended.reasons())
    assert ended.status == 1
    ended = workshop.run(
        "calibrate", *chosen, "--launches", "2", "--output", str(workshop.home / "stale")
    )
    assert ended.status == 1 and not list((workshop.home / "stale").rglob("*.tsv"))


def test_untouched_results_are_judged(workshop: Workshop, calibrated: str) -> None:
    ended = workshop.measure("--environment", calibrated, *SHORT)
    assert set(ended.verdicts().values()) <= {"provisional", "fast", "regressed"}, ended.reasons()
    assert len(ended.verdicts()) == 4
