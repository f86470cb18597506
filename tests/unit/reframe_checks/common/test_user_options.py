"""What of a partition's layouts is measured, and what else the user may ask for."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reframe_checks.common.mpicost import estimate_shared_bytes
from reframe_checks.common.user_options import is_layout_possible, read_choice, resolve, select_layouts
from site_configs.common import partition
from site_configs.schema.facts import PartitionFacts
from site_configs.schema.variables import SESSION
from site_configs.topology.layouts import Layout, Topology
from tests.support.request import ask

CLUSTER = Topology(cores_per_node=4, nodes=4)


def choose(
    monkeypatch: pytest.MonkeyPatch, topology: Topology = CLUSTER, oversubscribe: bool = False, **choice: Any
) -> str:
    """The layouts that a choice leaves of a partition, or adds to it."""
    ask(monkeypatch, choice=choice, oversubscribe=oversubscribe)
    extras = partition("cpu", topology=topology, environments=[])["extras"]
    return " ".join(map(str, select_layouts("cpu", PartitionFacts.of(extras))))


def test_without_a_choice_a_default_holds(monkeypatch):
    monkeypatch.delenv(SESSION, raising=False)
    assert read_choice("trials", 51) == 51
    ask(monkeypatch)
    assert read_choice("trials", 51) == 51
    ask(monkeypatch, choice={"trials": 5})
    assert read_choice("trials", 51) == 5


def test_boundaries_are_measured_on_request_and_not_by_a_night(monkeypatch):
    """A night stays as it is; more switches, and what lies between powers of two, are beyond it."""
    wide = Topology(cores_per_node=4, nodes=16, nodes_per_switch=2)
    night = choose(monkeypatch, wide).split()
    asked = choose(monkeypatch, wide, boundaries=True).split()
    assert {"17x4", "24x4", "25x4", "48x4"}.isdisjoint(night)
    assert {"17x4", "24x4", "25x4", "48x4"} <= {*asked}
    both = choose(monkeypatch, wide, boundaries=True, processes=[7]).split()
    assert {*both} == {*asked, "7x4"}


@pytest.mark.parametrize(
    ("choice", "complaint"),
    [
        ({"trial": 5}, "choice.trial: is not a setting of a check"),
        ({"trials": "5"}, "choice.trials: '5' is not int"),
        ({"trials": True}, "choice.trials: True is not int"),
        ({"sizes": 8}, "choice.sizes: 8 is not a list of int"),
        ({"sizes": [8, 2.5]}, r"choice.sizes: \[8, 2.5\] is not a list of int"),
        ({"strict": 1}, "choice.strict: 1 is not bool"),
        ({"again": ["bcast"]}, r"choice.again: \['bcast'\] is not a list of dict"),
    ],
)
def test_what_no_check_knows_is_refused_with_file_and_key(monkeypatch, choice, complaint):
    """A misspelt key would be obeyed by nobody, and its silence be taken for a result."""
    session = ask(monkeypatch, choice=choice)
    with pytest.raises(ValueError, match=f"^{session}/request.json: {complaint}"):
        read_choice("cache", "flush")


TOLD = {"outside": 1, "user": 2, "site": 3, "references": 4}


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        ((), 0),
        (("references",), 4),
        (("site", "references"), 3),
        (("user", "references"), 2),
        (("user", "site"), 2),
        (("user", "site", "references"), 2),
        (("outside", "references"), 1),
        (("outside", "site"), 1),
        (("outside", "user"), 1),
        (("outside", "user", "site", "references"), 1),
    ],
)
def test_who_has_the_last_word(told: tuple[str, ...], expected: int):
    assert resolve(0, **{name: TOLD[name] for name in told}) == expected


@pytest.mark.parametrize("nothing", [0, "", [], {}, False])
def test_an_empty_value_is_a_value(nothing):
    assert resolve(1, user=nothing, site=2) == nothing


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        ({}, "2x1 2x2 4x1 4x2 4x4 5x4 8x2 8x4 16x4"),
        ({"partitions": ["cpu"]}, "2x1 2x2 4x1 4x2 4x4 5x4 8x2 8x4 16x4"),
        ({"partitions": ["gpu"]}, ""),
        ({"processes": [2, 5]}, "2x1 2x2 5x4"),
        ({"per_node": [1]}, "2x1 4x1"),
        ({"processes": [8], "per_node": [2]}, "8x2"),
        ({"processes": [7]}, "7x4"),
        ({"processes": [3], "per_node": [1, 2]}, "3x1 3x2"),
        ({"processes": [8], "per_node": [2, 3]}, "8x2 8x3"),
        ({"processes": [17]}, ""),
        ({"processes": [8], "per_node": [1]}, ""),
        ({"processes": [8], "per_node": [8]}, ""),
        ({"processes": [2], "per_node": [4]}, ""),
    ],
)
def test_layouts_of_a_choice(monkeypatch, choice, expected):
    assert choose(monkeypatch, **choice) == expected


def test_more_processes_than_cores_only_where_that_was_asked_for(monkeypatch):
    one = Topology(2)
    assert choose(monkeypatch, one, processes=[5]) == ""
    assert choose(monkeypatch, one, True, processes=[5]) == "5x5"
    assert choose(monkeypatch, CLUSTER, True, processes=[33]) == "33x9"
    assert choose(monkeypatch, CLUSTER, True, processes=[6], per_node=[6]) == "6x6"


@given(st.integers(1, 100), st.integers(1, 100))
def test_what_fits_has_its_nodes_and_its_cores(processes: int, per_node: int):
    extras = partition("cpu", topology=CLUSTER, environments=[])["extras"]
    expected = per_node <= min(processes, 4) and processes <= 16 and -(-processes // per_node) <= 4
    assert is_layout_possible(Layout(processes, per_node), PartitionFacts.of(extras)) == expected


@pytest.mark.parametrize(
    ("routine", "blocks"),
    [*(("bcast", 16), ("scatter", 16), ("gather", 16), ("allgather", 72), ("alltoall", 128)), ("scan_sum", 44)],
)
def test_memory_of_a_case(routine: str, blocks: int):
    assert estimate_shared_bytes(routine, 8, 1000) == 1000 * blocks
