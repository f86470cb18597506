"""``./plumbline agree`` as a user runs it, on MPIs for which there is an IMB without Spack."""

import json
from pathlib import Path

import pytest

from site_configs.mpi.inventory import Inventory, load_inventory
from tests.support.faults import plants
from tests.support.faulty_site import write_faulty_site
from tests.support.mpi import of_family
from tests.support.plumbline_runner import Ended, Workshop

pytestmark = pytest.mark.long

FEW = ("--routine", "bcast,barrier", "--bytes", "8,1024", "--processes", "2", "--launches", "3")
#: IMB, but for a number that is wrong by far: too much for any noise of the machine.
LIAR = r"""#!/bin/bash
set -o pipefail
"{program}" "$@" | awk '/^# Benchmarking/ {{ name = $3 }}
    name == "Bcast" && $1 == 1024 {{ printf "%d %d %s %.2f %s\n", $1, $2, $3, $4 * 1e9, $5; fflush(); next }}
    {{ print; fflush() }}'
"""


@pytest.fixture(scope="module")
def there(workshop: Workshop) -> Inventory:
    """The MPIs, of which some have IMB; else the test is skipped and counted."""
    assert workshop.run("doctor").status == 0
    found = load_inventory(workshop.home)
    if not any(found.imb_of(mpi).folder for mpi in found.mpis):
        pytest.skip("no IMB for any MPI here: there is nothing to compare with")
    return found


@pytest.fixture(scope="module")
def name(there: Inventory) -> str:
    """An MPI that has IMB."""
    return next(mpi.name for mpi in there.mpis if there.imb_of(mpi).folder)


@pytest.fixture(scope="module")
def ended(workshop: Workshop, name: str) -> Ended:
    return workshop.run("agree", *FEW, "--environment", name)


def session(workshop: Workshop) -> Path:
    return max((workshop.home / "sessions").iterdir())


def test_programs_are_compared_and_who_lacks_is_named(workshop, name, ended):
    assert ended.status in (0, 1), ended.output + ended.errors
    assert "Traceback" not in ended.errors, ended.errors
    assert "crashed" not in ended.said and "incomplete" not in ended.said, ended.output
    data = json.loads((session(workshop) / "agreement.json").read_text())
    assert ended.status == (0 if data["good"] else 1), ended.output + ended.errors
    ratios, lacking = data["ratios"], data["gaps"]
    assert {each["environment"] for each in (*ratios, *lacking)} == {name}
    assert {(r["over"], r["under"]) for r in ratios} == {("mpicost", "imb")}
    expected = {("bcast", 8), ("bcast", 1024), ("barrier", 0)}
    assert {(r["routine"], r["bytes"]) for r in ratios} == expected
    assert {r["launches"] for r in ratios} == {3}
    assert {g["program"] for g in lacking} == {"osu"} and len(lacking) == 3
    assert all("no Spack" in g["reason"] for g in lacking)
    assert "not compared: " in ended.said and "osu: no Spack" in ended.said


def test_rounds_go_there_and_back(workshop: Workshop, ended: Ended) -> None:
    """The job script has all starts of a round before those of the next one, every other one backwards."""
    script = next(
        path
        for path in sorted(session(workshop).glob("reframe/stage/**/rfm_job.sh"))
        if "--back-to-back" in path.read_text()
    )
    starts = [
        ("mpicost" if "--back-to-back" in line else "imb", line.split(".launch")[1][0])
        for line in script.read_text().splitlines()
        if line.startswith("timeout")
    ]
    rounds = [[program for program, number in starts if number == each] for each in "123"]
    assert [number for _, number in starts] == sorted(number for _, number in starts)
    assert rounds[0] == rounds[2] == rounds[1][::-1] and rounds[0][0] == "mpicost"


@plants("data", "one time multiplied by 1e9", "output of IMB, in `agree`", "", 1,
        "mpicost-against-imb")  # fmt: skip
def test_a_wrong_number_is_a_finding(workshop: Workshop, there: Inventory, tmp_path, declared):
    mpi = next(mpi for mpi in there.mpis if there.imb_of(mpi).folder)
    imb = there.imb_of(mpi).installed
    liar = tmp_path / "liar" / "IMB-MPI1"
    liar.parent.mkdir()
    liar.write_text(LIAR.format(program=Path(imb.folder) / "IMB-MPI1"))
    liar.chmod(0o755)
    lying = {"programs": {"imb": str(liar.parent)}, "env_vars": mpi.env | dict(imb.env)}
    site = write_faulty_site(tmp_path / "planted.py", of_family(mpi.family), ["lying"], **lying)
    ended = workshop.run("agree", "--site", str(site), *FEW[:-1], "5")
    declared.check((), ended.status, [ended.output])
    data = json.loads((session(workshop) / "agreement.json").read_text())
    named = [each for each in data["findings"] if each["bytes"] == 1024]
    assert [(each["name"], each["routine"]) for each in named] == [("mpicost-against-imb", "bcast")]
    assert named[0]["text"] in ended.said  # it is wrapped


def test_a_routine_that_no_two_programs_have_is_refused(workshop: Workshop, there: Inventory):
    ended = workshop.run("agree", "--routine", "scan_sum")
    assert ended.status == 2 and "--routine scan_sum" in ended.errors
    assert len(ended.errors.splitlines()) == 1
