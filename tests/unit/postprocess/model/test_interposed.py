"""What stands in front of an MPI is held against the reference, and must be the same on all ranks."""

from pathlib import Path
from typing import Any

import pytest

from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.outcome import assess_launch
from postprocess.model.conditions import circumstances_of
from postprocess.model.interposed import INTERPOSED, TOLD, describe_unplanned_injection, is_delayed
from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import Verdict
from postprocess.references.comparability import InterposedLibraries, join_conditions
from tests.support.factories import record
from tests.support.factories.launch import book_of, finished, leave, planned

SLOW = {"path": "/opt/a/libslow.so", "text": "0123456789abcdef"}
PROFILER = {"path": "/opt/b/libprof.so", "text": "fedcba9876543210"}
DELAY = {"path": "/x/lib/libdelay.so", "text": "fedcba9876543210"}
FIX = "take it out of LD_PRELOAD and /etc/ld.so.preload, or calibrate as it is now"


def finished_with(session: Path, objects: Any) -> FinishedLaunch:
    """A launch with these objects in front of its MPI; one of the self-test with its library."""
    planted = DELAY in (objects or [])
    run = {INTERPOSED: objects} if objects is not None else {}
    run |= {"environment": {TOLD: "1"}} if planted else {}
    return finished(session, run=run, planted=planted)


LOADED = "is loaded in front of the MPI, and"


@pytest.mark.parametrize(
    ("ours", "theirs", "told"),
    [
        ([], [], ""),
        ([], None, ""),
        (None, [], ""),
        ([PROFILER], [PROFILER | {"path": "/elsewhere/libprof.so"}], ""),
        ([DELAY], [], ""),
        ([SLOW], [], f"libslow.so (01234567) {LOADED} nothing in {{}}; {FIX}"),
        ([SLOW], None, f"libslow.so (01234567) {LOADED} nothing in {{}}; {FIX}"),
        ([PROFILER, SLOW], [PROFILER], f"libslow.so (01234567) {LOADED} nothing in {{}}; "),
        (
            *([PROFILER], [PROFILER | {"text": "0" * 16}]),
            f"libprof.so (fedcba98) {LOADED} libprof.so (00000000) in {{}}; ",
        ),
        ([], [PROFILER], f"nothing {LOADED} libprof.so (fedcba98) in {{}}; "),
    ],
)
def test_a_launch_with_other_objects_than_its_reference_is_not_comparable(
    tmp_path: Path, ours: Any, theirs: Any, told: str
):
    """An object is the same if name and instructions are; a reference of before had none."""
    launch, behind = (
        finished_with(tmp_path / name, each) for name, each in (("ours", ours), ("theirs", theirs))
    )
    catalog = book_of(behind)
    results = evaluate_launches([launch], catalog, "local")
    (path,) = {each.path.name for each in catalog.sets.values()}
    verdicts = {each.verdict for each in results}
    assert verdicts == ({Verdict.NOT_COMPARABLE} if told else {Verdict.PASS})
    assert {each.reason.startswith(told.format(path)) for each in results} == {True}


def test_the_delay_library_is_for_launches_of_the_self_test_only(tmp_path: Path):
    """However it came to be loaded."""
    leave(tmp_path, planned(), record.launch(interposed=[DELAY]))
    found = assess_launch(planned(), tmp_path)
    assert found.verdict == Verdict.INCORRECT
    assert "selftest" in found.reason


def test_ranks_with_different_objects_are_no_launch(tmp_path: Path):
    elsewhere = {"rank": 1, INTERPOSED: [SLOW]}
    leave(tmp_path, planned(), record.launch(interposed=[], interposed_elsewhere=elsewhere))
    found = assess_launch(planned(), tmp_path)
    assert found.verdict == Verdict.INCORRECT
    said = found.reason
    assert said.startswith("rank 1 has loaded libslow.so in front of its MPI, and rank 0 nothing; ")


def test_launches_with_different_objects_make_no_calibration():
    plain, slow = (circumstances_of({INTERPOSED: each}) for each in ([], [SLOW]))
    with pytest.raises(ValueError, match=INTERPOSED):
        join_conditions(plain, slow)


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
def test_a_launch_is_delayed_if_and_only_if_that_was_planned(tmp_path, environment, planted, well):
    assert (describe_unplanned_injection({"environment": environment}, planted) == "") == well
    launch = planned(planted=planted)
    leave(tmp_path, launch, record.launch(environment=environment))
    found = assess_launch(launch, tmp_path)
    assert found.verdict == (None if well else Verdict.INCORRECT), found.reason
    assert well or "selftest" in found.reason or "self-test" in found.reason


def test_a_share_of_launches_is_spared():
    assert is_delayed({"environment": {TOLD: "1"}})
    assert not is_delayed({"environment": {TOLD: "0"}})
    assert not is_delayed({})


@pytest.mark.parametrize(
    ("library", "told", "fix"),
    [
        ("libmpi.so.12 (12ab)", "stands in the place of the MPI's own library", "own file back"),
        ("libmpi.so.40 (12ab)", "stands in the place of the MPI's own library", "own file back"),
        ("libmpitrace.so (12ab)", "is loaded in front of the MPI", "take it out of LD_PRELOAD"),
    ],
)
def test_a_replaced_library_is_no_preloaded_one(library: str, told: str, fix: str):
    difference = InterposedLibraries(INTERPOSED, library, "")
    assert told in str(difference) and fix in difference.fix
