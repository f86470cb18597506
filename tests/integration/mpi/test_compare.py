"""Comparisons on real MPIs: a kill, a side that does not build, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest

from postprocess.features.compare import data
from tests.support.faults import Declared, plants
from tests.support.faulty_site import write_faulty_site
from tests.support.killed_comparison import kill_after_first_pass, kill_when, list_block, start_comparison
from tests.support.mpi import Installation
from tests.support.plumbline_runner import Workshop

FEW = ("--program", "mpicost", "--routine", "bcast", "--bytes", "8", "--processes", "2")
FEW += ("--cache", "warm")


def read(folder: Path) -> dict[str, Any]:
    """The result of a comparison."""
    return json.loads((folder / "comparison.json").read_text())


@pytest.mark.long
def test_a_comparison_that_was_killed_goes_on_with_the_other_side(workshop, mpich, tmp_path):
    """Between both trial runs. Simulated machines show it in a block, and what comes in the end."""
    folder = tmp_path / "dossier"
    words = (mpich.name, mpich.name, *FEW, "--control")
    before = kill_after_first_pass(workshop, folder, 0, *words)
    again = start_comparison(workshop, folder, *words)
    said = kill_when(again, lambda: len(list_block(folder, 0)) == len(data.SIDES))
    assert (folder / data.FILE).read_bytes().startswith(before)
    assert "going on with" in said and "trial run of the old side" not in said
    assert [each.side for each in list_block(folder, 0)] == [data.OLD, data.NEW]


@pytest.mark.long
@plants("builds", "a compiler wrapper that fails", "the new side of a comparison",
        "incomplete", 1, "mpicost")  # fmt: skip
def test_a_side_that_does_not_build_is_broken_and_the_other_is_not_measured_for_nothing(
    workshop: Workshop, mpich: Installation, tmp_path: Path, declared: Declared
) -> None:
    broken, folder = tmp_path / "mpicc", tmp_path / "dossier"
    broken.write_text("#!/bin/sh\necho 'internal compiler error' >&2\nexit 1\n")
    broken.chmod(0o755)
    own = {"unbuilt": {"mpicc": str(broken)}}
    site = write_faulty_site(tmp_path / "faulty.py", mpich, ["well", "unbuilt"], own)
    ended = workshop.run("compare", "--site", str(site), "well", "unbuilt", *FEW, "--output", str(folder))
    assert (folder / "comparison.json").exists(), ended.output + ended.errors
    assert "not built: unbuilt, build_mpicost" in ended.said  # a trial run says what it builds
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
    declared.check({value.verdict for value in failed}, ended.status, [value.reason for value in failed])


@plants("use", "the same environment twice", "sides of a comparison", "", 2,
        "are the same thing; name another side, or pass --control")  # fmt: skip
def test_sides_that_are_the_same_thing_are_refused(workshop, mpich, declared):
    declared.check_refusal(workshop.run("compare", mpich.name, mpich.name, *FEW))


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
