"""Each option of what is measured is told once, and everything that speaks of it agrees."""

from __future__ import annotations

import argparse
from dataclasses import fields

import pytest

from postprocess.main import build_parser
from postprocess.model.case import Case
from postprocess.model.options import BYTES, CACHE_STATE, CHOOSING, OPTIONS, PEERS, TRIAL_COUNT
from site_configs.programs.program import PROGRAMS
from tests.support.factories.launch import case

#: Values of the command line that every option accepts.
GIVEN = {"program": "osu", "cache": "warm", "sync": "window", "strict": None, "boundaries": None}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.flag)
def test_the_parser_has_it_and_gives_a_value_of_its_kind(option):
    word = GIVEN.get(option.name, "8")
    given = build_parser().parse_args(["run", option.flag, *([word] if word else [])])
    value = getattr(given, option.name)
    values = value if option.several else [value]
    assert values and all(type(each) is option.kind for each in values)


def test_no_option_of_the_parser_that_the_checks_are_told_is_left_out():
    """What is here and in no table would be parsed, and nothing would come of it."""
    others = {"site", "mpis", "environment", "time_limit", "oversubscribe", "set_env"}
    others |= {"launches", "confirm_after", "confirm_within", "json", "references", "force", "help"}
    others |= {"family"}  # which stands for names of routines
    others |= {"failed"}  # which takes all options from another session
    others |= {"junit", "openmetrics", "on_failure"}
    (commands,) = (each for each in build_parser()._actions if isinstance(each, argparse._SubParsersAction))
    run = {each.dest for each in commands.choices["run"]._actions}
    assert {option.name for option in OPTIONS} == run - others


def test_what_chooses_is_a_part_of_a_case_of_the_same_kind():
    for option in CHOOSING:
        assert type(option.value_of(case())) is option.kind
    measured = {option.part for option in CHOOSING}
    assert {each.name for each in fields(Case)} - measured == {"system", "environment"}


def test_flags_variables_and_parts_are_each_named_once():
    for names in zip(*((each.flag, each.variable) for each in OPTIONS), strict=True):
        assert len({*names}) == len(OPTIONS)


def test_what_was_chosen():
    assert BYTES.wanted({"sizes": [8, 16]}) == (8, 16)
    assert BYTES.wanted({}) == BYTES.wanted({"sizes": []}) == ()
    assert CACHE_STATE.wanted({"cache": "warm"}) == ("warm",)
    assert CACHE_STATE.wanted({}) == ()
    assert PEERS.value_of(case(peer=3)) == 3


def test_the_programs_that_have_an_option_or_a_value():
    assert TRIAL_COUNT.programs_with(21) == ("mpicost", "kernels")
    assert CACHE_STATE.programs_with("flush") == ("mpicost",)
    assert CACHE_STATE.programs_with("rotate") == ("imb",)
    assert CACHE_STATE.programs_with("warm") == CACHE_STATE.programs_with(None) == tuple(PROGRAMS)
    assert BYTES.programs_with([8]) == tuple(PROGRAMS)
