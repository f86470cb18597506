"""Data of OSU and IMB: what is verified anew, and what comes of it."""

from dataclasses import replace
from pathlib import Path

import pytest

from postprocess.base.records import recall
from postprocess.model.launch import FinishedLaunch, LaunchOutcome, fail_launch
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.verdict import CaseResult, Verdict
from postprocess.parsers.osu_imb_launch import LOADED
from postprocess.session.lifecycle import validation
from tests.support.factories.launch import case, planned
from tests.support.faults import plants

BUILD = {"program": "a", "libraries": "b"}
BCAST = case("bcast", program="osu")
PUT = case("put_bw", program="osu")


class Told:
    """Records of a launch."""

    def __init__(self, **build: str):
        self.run = {LOADED: BUILD | build}
        self.measurements, self.wrong = {}, {}


def launched(outcome: LaunchOutcome | None = None, **build: str) -> FinishedLaunch:
    """A launch of one benchmark that can verify its data, and one that cannot."""
    benchmarks = (
        Benchmark("osu_bcast", "bcast", "title", "x(us)", verifies=True),
        Benchmark("osu_bcast", "put_bw", "title", "x(us)"),
    )
    launch = planned(program="osu", cases=(BCAST, PUT), benchmarks=benchmarks)
    return FinishedLaunch(launch, outcome or LaunchOutcome(Told(**build)), 0.0, "", {})


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """What is verified, after a launch that was all right."""
    path = tmp_path / validation.FILE
    validation.remember_verified(path, [launched()], [launched()], "session")
    return path


def unverified(path: Path, launch: FinishedLaunch) -> list:
    return list(validation.list_unverified(launch, recall(path, validation.VerifiedBuilds)))


def test_what_is_verified_with_this_build_is_not_verified_again(path):
    assert unverified(path, launched()) == []


@plants("stale", "another build of the MPI's library, or of the program, under the same name",
        "what is verified of OSU and IMB", "", 0, "bcast")  # fmt: skip
@pytest.mark.parametrize("part", ["program", "libraries"])
def test_another_build_is_verified_again(path, part: str, declared) -> None:
    again = unverified(path, launched(**{part: "other"}))
    assert again == [BCAST]
    declared.check((), 0, [each.routine for each in again])


def test_another_size_is_verified_too_and_both_are_remembered(path):
    other = replace(BCAST, bytes=1024)
    larger = replace(launched(), launch=replace(launched().launch, cases=(other,)))
    assert unverified(path, larger) == [other]
    validation.remember_verified(path, [larger], [larger], "session")
    assert unverified(path, larger) == unverified(path, launched()) == []


@pytest.mark.parametrize("text", ["", "{", '{"schema": 2, "cases": {}}', "[]"])
def test_a_damaged_file_verifies_again(path, text: str) -> None:
    path.write_text(text)
    assert unverified(path, launched()) == [BCAST]


def test_a_launch_that_does_not_tell_its_build_is_verified_each_time(path):
    silent = launched()
    del silent.run[LOADED]
    validation.remember_verified(path, [silent], [silent], "session")
    assert unverified(path, silent) == [BCAST]


def test_wrong_data_fails_every_case_of_its_benchmark_and_mpi():
    wrong = launched(fail_launch(Verdict.INCORRECT, "line 6: wrong data was received"))
    found = validation.assess_verification([wrong], [BCAST])
    cases = [replace(BCAST, bytes=4, processes=8), replace(BCAST, environment="other")]
    verdicts = [result.verdict for result in found.apply([CaseResult(c, Verdict.PASS) for c in cases])]
    assert (verdicts, found.unverified) == ([Verdict.INCORRECT, Verdict.PASS], ())


@plants("data", "wrong at one size of many, and a command that measures another size again", "OSU",
        "incorrect", 1, "run --processes 2 --bytes 8,64 --cache warm")  # fmt: skip
def test_the_command_of_wrong_data_measures_every_size_where_it_is_wrong(declared):
    wrong = launched(fail_launch(Verdict.INCORRECT, "line 6: wrong data was received"))
    cases = tuple(replace(BCAST, bytes=size) for size in (8, 64))
    wrong = replace(wrong, launch=replace(wrong.launch, cases=cases))
    found = validation.assess_verification([wrong], [BCAST])
    other = replace(BCAST, bytes=4, processes=8)
    results = [
        CaseResult(cases[0], Verdict.PASS, rerun="run --processes 2 --bytes 8 --cache warm"),
        CaseResult(other, Verdict.PASS, rerun="run --processes 8 --bytes 4 --cache warm"),
    ]
    judged = found.apply(results)
    declared.check({result.verdict for result in judged}, 1, [result.rerun for result in judged])


@plants("stale", "another library than was timed, in the launches that verify",
        "what is verified of OSU and IMB", "", 0, "loaded another program or other libraries")  # fmt: skip
def test_what_another_build_verified_is_not_verified(path, declared) -> None:
    path.unlink()
    other = launched(libraries="other")
    validation.remember_verified(path, [launched()], [other], "session")
    assert unverified(path, launched()) == [BCAST]
    found = validation.assess_verification([other], [BCAST], [launched()])
    declared.check((), 0, found.describe())


@pytest.mark.parametrize(("libraries", "same"), [("b", True), ("other", False)])
def test_another_executable_of_imb_verifies_what_loaded_the_same_libraries(libraries: str, same: bool) -> None:
    """Only one that was built with CHECK can."""
    timed = launched()
    imb = replace(timed.launch.benchmarks[0], executable="IMB-MPI1")
    timed = replace(timed, launch=replace(timed.launch, benchmarks=(imb,)))
    assert validation.has_same_build(timed, launched(program="other", libraries=libraries)) is same


@plants("data", "right in the nights before, and wrong in an acceptance", "data of OSU", "", 0,
        "bcast")  # fmt: skip
def test_what_is_wrong_now_is_no_longer_remembered_as_verified(path, declared) -> None:
    wrong = launched(fail_launch(Verdict.INCORRECT, "line 6: wrong data was received"))
    validation.remember_verified(path, [launched()], [wrong], "session")
    declared.check((), 0, [each.routine for each in unverified(path, launched())])


@plants("programs", "verification of data that crashes, or never begins", "OSU", "", 0,
        "data not verified: …:bcast:")  # fmt: skip
def test_what_came_to_no_end_has_verified_nothing(path, declared) -> None:
    path.unlink()
    crashed = launched(fail_launch(Verdict.CRASHED, "it died"))
    for started in ([crashed], []):
        found = validation.assess_verification(started, [BCAST])
        declared.check((), 0, found.describe())
        validation.remember_verified(path, [launched()], started, "session")
        assert unverified(path, launched()) == [BCAST]
        assert not found.wrong


def test_what_a_program_cannot_verify_is_told(tmp_path):
    told = list(validation.describe_unverifiable([launched()]))
    assert told == ["data not verified: osu verifies none of put_bw"]
    bcast = Benchmark("Bcast", "bcast", "Bcast", "t", executable="IMB-MPI1", verifies=True)
    launch = planned(program="imb", cases=(replace(BCAST, program="imb"),), benchmarks=(bcast,))
    (line,) = validation.describe_unverifiable([replace(launched(), launch=launch)])
    assert line == f"data not verified: imb of {launch.environment} (its executables cannot verify it)"


def test_a_program_that_verifies_in_every_launch_needs_no_launch_for_it():
    osu = launched()
    own = replace(osu, launch=replace(osu.launch, program="bindings"))
    assert [validation.has_unverified_data(launch) for launch in (osu, own)] == [True, False]
