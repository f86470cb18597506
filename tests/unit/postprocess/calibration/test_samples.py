"""Which launches count: those of the same method with the same programs as the last one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.calibration import samples
from postprocess.model.conditions import LaunchConditions
from tests.support.factories.launch import CASES, PLACE
from tests.support.factories.ledger import METHOD, launch


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"facts": {"source_hash": "other"}}, "source_hash"),
        ({"facts": {"method": METHOD | {"cpu_model": "another"}}}, "cpu_model"),
        ({"facts": {"method": METHOD | {"trials": 5}}}, "trials"),
        ({"circumstances": {"binding": {"2x2": "2 ranks of 1 CPU"}, "caches": "L2"}}, "caches"),
        ({"circumstances": {"binding": {"2x2": "2 ranks of 2 CPUs"}, "caches": "L1"}}, "binding"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_launches_of_something_else_do_not_count(changes, name: str):
    some = [launch(1.0, 1), launch(2.0, 2, **changes)]
    assert samples.collect_samples(some)[CASES[0]].values == [2.0]
    (left,) = samples.list_excluded(some)
    assert (left.launches, left.differing) == (1, (name,))


def test_launches_by_another_transport_do_not_count_where_both_tell_it():
    sysv, posix = ({"node": (name,)} for name in ("ucx:sysv", "ucx:posix"))
    untold = launch(1.0, 1)
    some = [untold, launch(2.0, 2, transports=sysv), launch(3.0, 3, transports=posix)]
    assert samples.collect_samples(some)[CASES[0]].values == [1.0, 3.0]
    (left,) = samples.list_excluded(some)
    assert (left.launches, left.differing) == (1, ("transports",))


def test_what_cannot_change_a_time_does_not_part_launches():
    facts = {"mpi_library": "MPICH at /a/path", "spec": "mpicost/another-hash"}
    there = launch(1.0, 1, facts=facts, machine={"host": "login2"})
    assert samples.collect_samples([there, launch(2.0, 2)])[CASES[0]].values == [1.0, 2.0]


def test_a_layout_has_a_binding_of_its_own():
    wide = {"binding": {"4x4": "4 ranks of 1 CPU"}, "caches": "L1"}
    some = [launch(1.0, 1), launch(2.0, 2, circumstances=wide)]
    assert samples.select_current(some) == some


@pytest.mark.parametrize(
    "by_hand", [{"oversubscribe": True}, {"set_env": {"A": "1"}}, {"shell": {"A": "1"}}], ids=str
)
def test_options_by_hand_count_only_where_nothing_was_measured_without(by_hand):
    otherwise = {"binding": {"2x2": "2 ranks of 2 CPUs"}, "caches": "L1"}
    odd = launch(9.0, 9, by_hand=by_hand, circumstances=otherwise)
    assert samples.collect_samples([launch(1.0, 1), odd])[CASES[0]].values == [1.0]
    assert samples.collect_samples([odd])[CASES[0]].values == [9.0]
    (left,) = samples.list_excluded([launch(1.0, 1), odd])
    assert (left.launches, "options" in left.differing) == (1, True)


def test_simulated_time_adds_up_over_sessions():
    some = [launch(1.0, day, exact=True) for day in (1, 2)]
    assert samples.collect_samples(some)[CASES[0]].values == [1.0, 1.0]


@given(st.permutations(range(1, 7)))
def test_the_order_of_the_ledger_is_of_no_account(days):
    found = samples.collect_samples([launch(float(day), day) for day in days])
    assert set(found) == set(CASES)
    assert found[CASES[0]].values == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


PLACE_NOW = ("local:cpu", PLACE[2])


def now(program: str = "mpicost", **circumstances: str) -> dict[tuple[str, str], samples.ConditionsNow]:
    """How launches run now, as far as a start has told."""
    told = {"binding": {"2x2": "2 ranks of 1 CPU"}, "caches": "L1", **circumstances}
    return {PLACE_NOW: samples.ConditionsNow(program, LaunchConditions(False, {}, told, False, "a processor"))}


@pytest.mark.parametrize(
    ("told", "differing"),
    [
        ({}, []),
        ({"interposed": "nop.so"}, ["interposed"]),
        ({"caches": "L2"}, ["caches"]),
        ({"program": "osu", "compiler": "gcc 13"}, []),
    ],
)
def test_earlier_launches_are_counted_only_if_they_ran_as_launches_run_now(told, differing):
    """Else a calibration finds twenty launches there, and leaves them out afterwards."""
    known, found = launch(1.0, 1), now(**told)
    assert samples.list_outdated_facts(known, found) == differing
    assert samples.select_as_now([known], found) == ([] if differing else [known])
    assert samples.select_as_now([known], found, {known.session}) == [known]  # its own session tells
    assert samples.select_as_now([known], {}) == [known]
    assert [each.differing for each in samples.count_outdated([known], found)] == [tuple(differing)] * bool(
        differing
    )
