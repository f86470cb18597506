"""What stands in front of an MPI is held against the reference, and must be the same on all ranks."""

from pathlib import Path
from typing import Any

import pytest

from postprocess.judging.evaluate import evaluate_launches
from postprocess.judging.outcome import assess_launch
from postprocess.model.conditions import circumstances_of
from postprocess.model.interposed import (
    BELOW,
    BELOW_RECORD,
    INTERPOSED,
    TOLD,
    describe_unplanned_injection,
    is_delayed,
)
from postprocess.model.launch import FinishedLaunch
from postprocess.model.verdict import Verdict
from postprocess.references.comparability import InterposedLibraries, join_conditions
from tests.support.factories import record
from tests.support.factories.launch import book_of, finished, leave, planned
from tests.support.faults import Declared, plants

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
    verdicts = {result.verdict for result in results}
    assert verdicts == ({Verdict.NOT_COMPARABLE} if told else {Verdict.PASS})
    assert {result.reason.startswith(told.format(path)) for result in results} == {True}


UCX = {"name": "ucx", "path": "/opt/mpich/lib/libucp.so.0", "version": "1.20.1", "text": "0123456789abcdef"}
LIBFABRIC = {"name": "libfabric", "path": "/a/libfabric.so.1", "version": "", "text": "fedcba9876543210"}
OTHER_UCX, OTHER_LIBFABRIC = ({**each, "version": "1.18.1", "text": "0" * 16} for each in (UCX, LIBFABRIC))


def judge_below(folder: Path, ours: Any, theirs: Any, **launch: Any) -> set[tuple[str, str]]:
    """Verdicts and reasons of a launch with these libraries below its MPI, by a reference with those."""
    made, behind = (
        finished(folder / name, run={} if each is None else {BELOW_RECORD: each}, **more)
        for name, each, more in (("ours", ours, launch), ("theirs", theirs, {}))
    )
    return {(result.verdict, result.reason) for result in evaluate_launches([made], book_of(behind), "local")}


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        ([UCX], [UCX | {"path": "/elsewhere/libucp.so.0"}]),
        ([UCX], None),
        (None, [UCX]),
        ([UCX], [UCX, LIBFABRIC]),  # which of them an MPI loads, its variables decide
    ],
)
def test_the_same_libraries_below_an_mpi_compare_wherever_they_are(tmp_path: Path, ours: Any, theirs: Any):
    assert judge_below(tmp_path, ours, theirs) == {(Verdict.PASS, "")}


@plants(
    "environment", "`LD_LIBRARY_PATH` that leads an MPI to another UCX, or an upgrade of it",
    "the shell of a night", "not-comparable", 1,
    "below the MPI is ucx 1.18.1 (00000000), and ucx 1.20.1 (01234567) in …",
)  # fmt: skip
def test_a_launch_on_another_ucx_than_its_reference_is_not_comparable(tmp_path: Path, declared: Declared):
    ((verdict, reason),) = judge_below(tmp_path, [OTHER_UCX, LIBFABRIC], [UCX, LIBFABRIC])
    declared.check_case(verdict, reason)


@plants(
    "environment", "`I_MPI_OFI_LIBRARY` or `FI_PROVIDER_PATH`: another libfabric, or other providers of it",
    "the shell of a night", "not-comparable", 1,
    "below the MPI is libfabric 1.18.1 (00000000), and libfabric (fedcba98) in …; see what leads to it",
)  # fmt: skip
def test_a_launch_on_another_libfabric_than_its_reference_is_not_comparable(tmp_path: Path, declared: Declared):
    ((verdict, reason),) = judge_below(tmp_path, [OTHER_LIBFABRIC], [LIBFABRIC])
    declared.check_case(verdict, reason)


def test_who_sets_a_variable_by_an_option_sees_what_another_library_below_changes(tmp_path: Path):
    by_hand = {"set_env": {"LD_LIBRARY_PATH": "/opt/ucx/lib"}}
    assert judge_below(tmp_path, [OTHER_UCX], [UCX], by_hand=by_hand) == {(Verdict.PASS, "")}


def test_launches_on_different_libraries_below_an_mpi_make_no_calibration():
    one, other, both = (
        circumstances_of({BELOW_RECORD: each}) for each in ([UCX], [OTHER_UCX], [UCX, LIBFABRIC])
    )
    assert (
        join_conditions(one, both)[BELOW]
        == both[BELOW]
        == {"ucx": "1.20.1 (01234567)", "libfabric": "(fedcba98)"}
    )
    with pytest.raises(ValueError, match=BELOW):
        join_conditions(one, other)


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
