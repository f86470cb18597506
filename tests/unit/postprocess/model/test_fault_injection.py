"""Delays of the self-test pass for nothing else: not in a night, not in a calibration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from postprocess.judging.outcome import assess
from postprocess.model.fault_injection import TOLD, misplanted, was_delayed
from postprocess.model.verdict import Verdict
from tests.support.factories import record
from tests.support.factories.launch import leave, planned
from tests.support.mpi import of_family
from tests.support.plumbline_runner import Workshop

SHORT = ("--program", "mpicost", "--routine", "barrier", "--trials", "5", "--processes", "2")


@pytest.mark.parametrize(
    ("environment", "planted", "well"),
    [
        ({}, False, True),
        ({"LD_PRELOAD": "/x/lib/libwitness.so"}, False, True),
        ({"LD_PRELOAD": "/a.so:/x/lib/libdelay.so"}, False, False),
        ({TOLD: "1"}, False, False),
        ({TOLD: "0"}, False, False),
        ({"PLUMBLINE_DELAY_FRACTION": "0.1"}, False, False),
        ({}, True, False),
        ({"LD_PRELOAD": "/x/lib/libdelay.so"}, True, False),  # it was named, and not loaded
        ({TOLD: "1"}, True, True),
        ({TOLD: "0"}, True, True),
    ],
)
def test_a_launch_is_delayed_if_and_only_if_that_was_planned(
    tmp_path: Path, environment: dict[str, Any], planted: bool, well: bool
):
    assert (misplanted({"environment": environment}, planted) == "") == well
    launch = planned(planted=planted)
    leave(tmp_path, launch, record.launch(environment=environment))
    found = assess(launch, tmp_path)
    assert found.verdict == (None if well else Verdict.INCORRECT), found.reason
    assert well or "selftest" in found.reason or "self-test" in found.reason


def test_a_share_of_launches_is_spared():
    assert was_delayed({"environment": {TOLD: "1"}})
    assert not was_delayed({"environment": {TOLD: "0"}})
    assert not was_delayed({})


@pytest.mark.mpi
def test_the_library_in_a_night_or_a_calibration_is_incorrect(tmp_path: Path):
    """Whoever preloads it by hand gets no verdict on speed, and no reference."""
    name = of_family("mpich").name
    workshop = Workshop(tmp_path / "home")
    assert workshop.run("run", "--environment", name, *SHORT).status in (0, 1)
    library = next((tmp_path / "home").glob("**/installed/lib/libdelay.so"))
    delay = {
        "LD_PRELOAD": library,
        "PLUMBLINE_DELAY_FRACTION": "0.5",
        "PLUMBLINE_DELAY_ROUTINES": "all",
    }
    words = [f"--set-env={name}:{key}={value}" for key, value in delay.items()]
    ended = workshop.measure("--environment", name, *SHORT, *words)
    assert (ended.status, set(ended.verdicts().values())) == (1, {"incorrect"})
    assert "delays are planted into it" in next(iter(ended.reasons()))
    references = tmp_path / "references"
    workshop.run(
        "calibrate", "--environment", name, *SHORT, *words, "--launches=1", f"--output={references}"
    )
    assert not list(references.glob("**/*.tsv"))
