"""A second look goes to the checks and comes back as it was meant."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from postprocess.judging.retest import (
    RetestTarget,
    build_retest_choice,
    list_avoided_nodes,
    list_wanted_nodes,
    select_targets,
)
from tests.support.factories.launch import case


def test_cases_of_a_routine_are_one_look_and_survive_json():
    cases = [case(size=8), case(size=80), case(routine="barrier", size=0)]
    choice = json.loads(json.dumps(build_retest_choice(cases, dict.fromkeys(cases, ("n1", "n2")))))
    found = select_targets(choice)
    assert [look.routine for look in found] == sorted({each.routine for each in cases})
    assert {look.avoided for look in found} == {("n1", "n2")}
    assert found[0] == RetestTarget(
        "mpicost", cases[0].partition, cases[0].environment, "2x2", "barrier", ("n1", "n2")
    )


def test_only_the_looks_of_a_place_are_taken():
    choice = build_retest_choice([case(), case(routine="barrier", size=0)], {})
    place = {"program": "mpicost", "layout": "2x2"}
    assert len(select_targets(choice, **place)) == 2
    assert select_targets(choice, **place, environment="elsewhere") == []
    assert select_targets(choice, program="osu", layout="2x2") == []


@pytest.mark.parametrize(
    ("nodes", "needed", "avoided"), [(4, 2, ["n1", "n2"]), (3, 1, ["n1", "n2"]), (3, 2, []), (2, 1, [])]
)
def test_nodes_are_avoided_by_their_short_names_while_enough_others_are_left(nodes, needed, avoided):
    """A scheduler knows n1 where MPI says n1.cluster, and one name that it does not know refuses the job."""
    slow = [RetestTarget("mpicost", "cpu", "mpich", "2x1", "bcast", ("n2.cluster", "n1.cluster"))]
    slow.append(replace(slow[0], routine="barrier", avoided=("n1",)))
    assert list_avoided_nodes(slow, nodes, needed) == avoided
    assert list_avoided_nodes([replace(slow[0], avoided=())], nodes, needed) == []


def test_nodes_that_are_wanted_come_by_their_short_names():
    cases = [case(), case(routine="barrier", size=0)]
    choice = json.loads(json.dumps(build_retest_choice(cases, {}, dict.fromkeys(cases, ("n2.cluster", "n1")))))
    assert list_wanted_nodes(select_targets(choice)) == ["n1", "n2"]
    assert list_wanted_nodes(select_targets(build_retest_choice(cases, {}))) == []
