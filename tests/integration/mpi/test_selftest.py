"""A whole self-test on a real MPI: a few nights, and the same with a judge who lets everything pass."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import polars
import pytest

from postprocess.analyses.selftest import data
from postprocess.model.fault_injection import TOLD
from tests.support.mpi import of_family
from tests.support.plumbline_runner import ROOT, Ended, Workshop, unflushed

pytestmark = [pytest.mark.alone, pytest.mark.long]

#: A plant that even a busy machine shows, so that no verdict of this test hangs on how busy it is.
HUGE = """
import sys
from dataclasses import replace
from postprocess.analyses.selftest import injections
from postprocess.session import selftest
from postprocess.main import main
from postprocess.model.verdict import Verdict
injections.INJECTION_KINDS["huge"] = injections.InjectionKind("huge", "31 times as slow", 30.0)
"""
BLIND = """
judged = selftest.SelftestBench.judged
selftest.SelftestBench.judged = lambda bench, finished: [
    replace(each, verdict=Verdict.PASS) for each in judged(bench, finished)
]
"""
MAIN = "sys.exit(main(*sys.argv[1:3], sys.argv[3:]))"
NIGHTS = (
    "--routine",
    "barrier",
    "--trials",
    "5",
    "--plants",
    "huge",
    "--nights",
    "2",
    "--seed",
    "1",
    "--seconds-per-layout",  # one launch a night
    "1",
)


def selftest(workshop: Workshop, *words: str, fault: str = "") -> Ended:
    """A self-test with the huge plant, and with a fault of Plumbline's own."""
    chosen = ("--environment", of_family("mpich").name, *NIGHTS, *words)
    done = subprocess.run(
        [
            *(sys.executable, "-c", HUGE + fault + MAIN),
            *(str(ROOT), str(workshop.home), *unflushed(("selftest", *chosen))),
        ],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env=workshop.environment(),
        timeout=600,
    )
    return Ended(done.returncode, done.stdout, done.stderr)


def test_what_is_planted_is_caught_and_a_blind_judge_too(tmp_path: Path):
    workshop, output = Workshop(tmp_path / "home"), tmp_path / "first"
    ended = selftest(workshop, f"--output={output}", "--unchanged=1", "--launches=10")
    begun, nights = data.read_selftest(output / data.FILE)
    said = ended.output + ended.errors
    assert (begun.seed, len(nights)) == (1, 3), said

    planted = [row for night in nights for row in night.rows if row.plant]
    assert [(row.target, row.delayed) for row in planted] == [(True, True)] * 2, said
    assert sum(night.unchanged for night in nights) == 1
    page = json.loads((output / "selftest.json").read_text())
    assert page["scores"]["plants"][0]["sure_missed"] == 0, (
        said
    )  # a busy machine is sure of nothing
    assert ended.status == bool(page["scores"]["faults"])
    assert (output / "selftest.md").exists()

    # Nothing of it counts for a night: not its sessions, not its references.
    stored = polars.read_parquet(workshop.home / "store" / "*.parquet")
    assert set(stored["mode"]) == {"selftest"}
    assert stored["provenance"].str.contains(TOLD).any()
    assert not list((workshop.home / "references").glob("**/*.tsv"))
    assert not list(workshop.home.glob("calibrations/*"))

    # It is scored again without a launch.
    sessions = list((workshop.home / "sessions").iterdir())
    again = selftest(workshop, "--again", str(output))
    assert again.status == ended.status
    assert len(list((workshop.home / "sessions").iterdir())) == len(sessions)

    references = ("--references", str(output / "references"), f"--output={tmp_path / 'second'}")
    blind = selftest(workshop, *references, "--unchanged=1", fault=BLIND)
    assert blind.status == 1, blind.output + blind.errors
    assert "FAULT: " in blind.output


def test_too_few_references_are_refused(tmp_path: Path):
    workshop, empty = Workshop(tmp_path / "home"), tmp_path / "none"
    empty.mkdir()
    ended = selftest(workshop, "--references", str(empty))
    assert ended.status == 2
    assert "has not 10 launches of each case" in ended.errors


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("--plants", "slower-1"), "'slower-1' is none of slower-5"),
        (("--nights", "0"), "whole number"),
        (("--again", "/nonexistent"), "No such file"),
    ],
)
def test_wrong_words_are_refused_in_one_line(tmp_path: Path, words, named: str):
    ended = Workshop(tmp_path / "home").run("selftest", *words)
    assert ended.status == 2
    assert named in ended.errors
    assert ended.errors.count("\n") == 1
