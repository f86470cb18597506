"""``./plumbline guidelines`` on a simulated machine, whose time repeats: what loses is found, and mended."""

import json
from pathlib import Path

import pytest

from tests.support.plumbline_runner import Ended, Workshop

FEW = (
    *("--site", "simulated", "--partition", "torus", "--processes", "8"),
    *("--routine", "scatter,scatter_as_sends,barrier", "--bytes", "8,32768"),
)


def guidelines(workshop: Workshop) -> dict:
    """What the last session found that has guidelines."""
    pages = (workshop.home / "sessions").glob("*/guidelines.json")
    return json.loads(max(pages).read_text())


@pytest.fixture(scope="module")
def ended(workshop: Workshop) -> Ended:
    return workshop.run("guidelines", *FEW)


def test_what_loses_is_named_and_the_setting_that_helps(workshop: Workshop, ended: Ended) -> None:
    """MPICH's binomial tree for scatter passes on what others need; single sends do not."""
    assert ended.status == 0, ended.output + ended.errors
    data = guidelines(workshop)
    broken = [each for each in data["guidelines"] if each["standing"] == "violated"]
    assert ["scatter", 32768] in [each["special"] for each in broken]
    assert "scatter_as_sends" in ended.said
    helped = [each for each in data["overrides"] if each["advised"]]
    assert all(each["ratio"] < 0.95 for each in helped)
    assert ["scatter", 32768] in [each["operation"] for each in helped]
    sessions = [path.parent for path in (workshop.home / "sessions").glob("*/plan")]
    assert len(sessions) >= 3  # measured, looked for, measured anew


def test_strict_fails_and_no_overrides_tries_none(workshop: Workshop, ended: Ended, tmp_path: Path) -> None:
    file = tmp_path / "told.json"
    workshop.run("guidelines", *FEW, "--strict", "--no-overrides", "--json", str(file)).expect(1)
    told = json.loads(file.read_text())
    assert told["overrides"] == [] and told["guidelines"]
    first = guidelines(workshop)["guidelines"]
    assert [each["ratio"] for each in told["guidelines"]] == [each["ratio"] for each in first]
    assert workshop.run("guidelines", *FEW, "--launches", "3").status == 2
