"""``run --failed``: the cases that failed in a session, in one command, with the options of then."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.workdir import WorkDirectory
from postprocess.commands.run import choose_failed
from postprocess.main import build_parser
from postprocess.model.verdict import Verdict
from tests.support.factories import report as samples
from tests.support.faults import Declared, plants


@pytest.fixture
def work(work: WorkDirectory) -> WorkDirectory:
    """A session in which two cases failed for one reason, and one for another."""
    night = samples.healthy_night(samples.few_cases()[:5])
    again = "./plumbline run --environment {} --routine {} --bytes 8 --trials 7 --set-env=a:X=1"
    lost = [("mpich", "bcast", "lost"), ("openmpi", "bcast", "lost"), ("mpich", "scan_sum", "slow")]
    failed = [
        replace(
            result,
            verdict=Verdict.INCOMPLETE if reason == "lost" else Verdict.REGRESSED,
            reason=reason,
            rerun=again.format(environment, routine),
        )
        for result, (environment, routine, reason) in zip(night.results, lost, strict=False)
    ]
    night.results = [*failed, *night.results[3:]]
    night.write(work.sessions / samples.SESSION)
    return work


def chosen(work: WorkDirectory, *words: str) -> argparse.Namespace:
    return choose_failed(work, build_parser().parse_args(["run", *words]))


def test_what_failed_is_run_again_with_the_options_of_then(work: WorkDirectory):
    found = chosen(work, "--failed", "--json", "x.json")
    assert sorted(found.environment) == ["mpich", "openmpi"]
    assert sorted(found.routine) == ["bcast", "scan_sum"]
    assert (found.bytes, found.trials, found.set_env) == ([8], 7, [("a", "X", "1")])
    assert (found.processes, found.json, found.name) == ([], Path("x.json"), "run")


def test_a_number_chooses_what_stands_under_one_reason(work: WorkDirectory):
    first = chosen(work, "--failed", f"{samples.SESSION}:1")
    assert (first.environment, first.routine) == (["mpich", "openmpi"], ["bcast"])
    second = chosen(work, "--failed", "latest:2")
    assert (second.environment, second.routine) == (["mpich"], ["scan_sum"])


@plants("use", "a session, a number or an option that chooses no failed case", "`run --failed`", "", 2,
        "no finished session there; | it has groups 1 to 2; | runs cases as they were run; ")  # fmt: skip
@pytest.mark.parametrize(
    "words", [["--failed", "20200101T000000Z-1"], ["--failed", "latest:3"], ["--failed", "--routine", "bcast"]]
)
def test_what_chooses_nothing_is_refused(work: WorkDirectory, words, declared: Declared):
    with pytest.raises(UsageError) as error:
        chosen(work, *words)
    declared.check_error(error.value)
