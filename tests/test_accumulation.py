"""Which launches count: those of the same method with the same programs as the last one."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from launch_samples import CASES
from ledger_samples import METHOD, launch

from postprocess.accumulation import current, passed, samples
from postprocess.cases import Case


def test_launches_of_several_days_add_up():
    found = samples([launch(1.0, 1), launch(2.0, 2), launch(3.0, 3)])
    assert set(found) == set(CASES)
    assert found[CASES[0]].values == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("changes", "name"),
    [
        ({"facts": {"source_hash": "other"}}, "source_hash"),
        ({"facts": {"spec": "mpicost/abc"}}, "spec"),
        ({"facts": {"method": METHOD | {"cpu_model": "another"}}}, "cpu_model"),
        ({"facts": {"method": METHOD | {"trials": 5}}}, "trials"),
        ({"circumstances": {"binding": {"2x2": "2 ranks of 1 CPU"}, "caches": "L2"}}, "caches"),
        ({"circumstances": {"binding": {"2x2": "2 ranks of 2 CPUs"}, "caches": "L1"}}, "binding"),
        ({"by_hand": {"oversubscribe": True}}, "options"),
    ],
    ids=lambda each: each if isinstance(each, str) else "",
)
def test_launches_of_something_else_do_not_count(changes, name: str):
    some = [launch(1.0, 1), launch(2.0, 2, **changes)]
    assert samples(some)[CASES[0]].values == [2.0]
    (left,) = passed(some)
    assert (left.launches, left.differing) == (1, name)


def test_what_cannot_change_a_time_does_not_part_launches():
    there = launch(1.0, 1, facts={"mpi_library": "MPICH at /a/path"}, machine={"host": "login2"})
    assert samples([there, launch(2.0, 2)])[CASES[0]].values == [1.0, 2.0]


def test_a_layout_has_a_binding_of_its_own():
    wide = {"binding": {"4x4": "4 ranks of 1 CPU"}, "caches": "L1"}
    some = [launch(1.0, 1), launch(2.0, 2, circumstances=wide)]
    assert current(some) == some


def test_what_begins_afresh_forgets_earlier_launches_of_its_cases_alone():
    new = launch(2.0, 2, cases=CASES[:1], afresh=True)
    later = launch(3.0, 3)
    found = samples([launch(1.0, 1), new, later])
    assert found[CASES[0]].values == [2.0, 3.0]
    assert found[CASES[1]].values == [1.0, 3.0]


def test_simulated_time_is_that_of_the_last_session():
    some = [launch(1.0, 1, exact=True), launch(2.0, 2, exact=True)]
    assert samples(some)[CASES[0]].values == [2.0]


@given(st.permutations(range(1, 7)))
def test_the_order_of_the_ledger_is_of_no_account(days):
    some = [launch(float(day), day) for day in days]
    assert samples(some)[CASES[0]].values == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


NAMES = st.text("abz019_.+", min_size=1, max_size=5)


@given(NAMES, NAMES, st.integers(0, 9), st.sampled_from(["flush", "warm", "rotate"]))
def test_a_case_is_found_by_its_key(name: str, routine: str, peer: int, cache: str):
    case = Case(name, "cpu", name, "mpicost", routine, peer, cache, "loop", 16, 8, 1000)
    assert Case.from_key(case.key) == case


@pytest.mark.parametrize("key", ["", "a:b", CASES[0].key + ":1", CASES[0].key.replace("x", "y")])
def test_what_is_no_key_is_refused(key: str):
    with pytest.raises(ValueError, match="not the key of a case"):
        Case.from_key(key)
