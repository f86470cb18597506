"""Comparisons on real MPIs: a planted slowdown, a kill, a side that does not build, and what is refused.

What is planted is five times as slow, launches are paired, and spikes are filtered out of as many trials as a
night has.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from postprocess.analyses.compare import data
from tests.support.faults import Declared, plants
from tests.support.faulty_site import write_faulty_site
from tests.support.mpi import Installation, of_family
from tests.support.plumbline_runner import LIMIT, Workshop

FEW = ("--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--processes", "2")
FEW += ("--cache", "warm")
PATIENCE = 3 * LIMIT  #: seconds; a comparison has as many launches as a dozen nights


def read(folder: Path) -> dict[str, Any]:
    """The result of a comparison."""
    return json.loads((folder / "comparison.json").read_text())


def kill_when_begun(process: subprocess.Popen[str], passes: Path) -> None:
    """Kill a command and all that it started, once its first pass is written down."""
    end = time.monotonic() + PATIENCE
    while not passes.exists() or not any(
        each.block for each in data.read_comparison(passes).passes
    ):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < end, "no pass was written"
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


@pytest.mark.long
@pytest.mark.alone
@plants("lost", "SIGKILL of the driver and its process group after the first pass", "a comparison",
        "", 1, "going on with … passes done")  # fmt: skip
def test_a_comparison_that_was_killed_goes_on_and_calls_what_was_planted(
    workshop: Workshop, mpich: Installation, tmp_path: Path, declared: Declared
) -> None:
    folder = tmp_path / "dossier"
    words = ("compare", mpich.name, mpich.name, *FEW, "--control", "--plant", "slower-400:bcast")
    words += ("--seed", "1", "--output", str(folder))
    begun = subprocess.Popen(
        workshop.command(*words),
        env=workshop.environment(),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    kill_when_begun(begun, folder / data.FILE)
    before = (folder / data.FILE).read_bytes()
    again = workshop.start(*words)
    output, errors = again.communicate(timeout=PATIENCE)
    assert (folder / data.FILE).read_bytes().startswith(before[: before.rfind(b"\n") + 1])
    (case,) = read(folder)["cases"]
    assert case["verdict"] == "slower" and case["ratio"] > 2, output + errors
    (told,) = (line for line in output.splitlines() if line.startswith("going on with"))
    # on a busy machine a control may move, and then the comparison is void
    declared.check((), 1 if read(folder)["decision"] == "void" else again.returncode, [told])


@pytest.mark.long
@plants("builds", "a compiler wrapper that fails", "the new side of a comparison",
        "incomplete", 1, "mpicost")  # fmt: skip
def test_a_side_that_does_not_build_is_broken_and_the_other_is_not_measured_for_nothing(
    workshop: Workshop, mpich: Installation, tmp_path: Path, declared: Declared
) -> None:
    broken, folder = tmp_path / "mpicc", tmp_path / "dossier"
    broken.write_text("#!/bin/sh\necho 'internal compiler error' >&2\nexit 1\n")
    broken.chmod(0o755)
    site = write_faulty_site(tmp_path / "faulty.py", mpich, ["well", "unbuilt"])
    text = site.read_text()
    made = re.findall(r"environment\(name, \*\*(.*)\) for name", text)[0]
    own = f'environments[1] = environment("unbuilt", **({made} | {{"mpicc": {str(broken)!r}}}))\n'
    site.write_text(text.replace("site_configuration =", f"{own}site_configuration ="))
    ended = workshop.run(
        "compare", "--site", str(site), "well", "unbuilt", *FEW, "--output", str(folder)
    )
    assert (folder / "comparison.json").exists(), ended.output + ended.errors
    found = read(folder)
    assert found["counts"] == {"broken": 1} and found["pairs"] == 0, ended.output
    stored = data.read_comparison(folder / data.FILE)
    assert [each.block for each in stored.passes] == [0, 0]
    failed = [
        said
        for each in stored.passes
        if each.side == data.NEW
        for launch in each.launches
        for said in launch.cases.values()
    ]
    declared.check(
        {each.verdict for each in failed}, ended.status, [each.reason for each in failed]
    )


@plants("use", "the same environment twice", "sides of a comparison", "", 2,
        "are the same thing; name another side, or pass --control")  # fmt: skip
def test_sides_that_are_the_same_thing_are_refused(
    workshop: Workshop, mpich: Installation, declared: Declared
) -> None:
    declared.check_refusal(workshop.run("compare", mpich.name, mpich.name, *FEW))


@pytest.mark.long
@plants("use", "programs that one side has not", "sides of a comparison", "", 2,
        "have no case in common; choose a --program and --processes that both have")  # fmt: skip
def test_sides_without_a_common_case_are_refused(
    workshop: Workshop, mpich: Installation, declared: Declared
) -> None:
    only = ("--program", "imb", "--routine", "bcast", "--processes", "2", "--iterations", "20")
    other = of_family("openmpi").name  # IMB of Intel MPI's wheel fits MPICH alone
    declared.check_refusal(workshop.run("compare", mpich.name, other, *only))
    assert not list((workshop.home / "compare").glob("*"))


@plants("builds", "a released version of which there is no wheel", "a side of a comparison", "", 2,
        "mpich@4.3.9: cannot be had on this machine: mpich 4.3.9: the package index has no such wheel for this "
        "machine; the nearest are 4.3.1, 4.3.2, 5.0.2")  # fmt: skip
def test_a_wheel_that_does_not_exist_is_refused_with_the_nearest_versions(
    tmp_path: Path, mpich: Installation, declared: Declared
) -> None:
    index = tmp_path / "index"
    index.mkdir()
    for version in ("3.4.3", "4.3.1", "4.3.2", "5.0.2"):
        (index / f"mpich-{version}-py3-none-any.whl").write_bytes(b"")
    own = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    lonely = Workshop(tmp_path / "home")
    declared.check_refusal(lonely.run("compare", "mpich@4.3.9", mpich.name, *FEW, **own))
