"""A second look goes to the checks and comes back as it was meant."""

from __future__ import annotations

import json

from launch_samples import case

from postprocess.second_look import Look, looks, taken


def test_cases_of_a_routine_are_one_look_and_survive_json():
    cases = [case(size=8), case(size=80), case(routine="barrier", size=0)]
    choice = json.loads(json.dumps(looks(cases, dict.fromkeys(cases, ("n1", "n2")))))
    found = taken(choice)
    assert [look.routine for look in found] == sorted({each.routine for each in cases})
    assert {look.avoided for look in found} == {("n1", "n2")}
    assert found[0] == Look(
        "mpicost", cases[0].partition, cases[0].environment, "2x2", "barrier", ("n1", "n2")
    )


def test_only_the_looks_of_a_place_are_taken():
    choice = looks([case(), case(routine="barrier", size=0)], {})
    place = {"program": "mpicost", "layout": "2x2"}
    assert len(taken(choice, **place)) == 2
    assert taken(choice, **place, environment="elsewhere") == []
    assert taken(choice, program="osu", layout="2x2") == []
