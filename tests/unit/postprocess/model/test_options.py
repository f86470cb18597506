"""Each option of what is measured is told once, and everything that speaks of it agrees."""

import argparse
import json
from dataclasses import fields, replace

import pytest

from postprocess.main import build_parser
from postprocess.model import options
from postprocess.model.case import Case
from site_configs.programs.program import PROGRAMS
from tests.support.factories.launch import case

#: Values of the command line, of the options that do not take a number.
GIVEN = {
    "program": "osu",
    "routine": "bcast",
    "cache": "warm",
    "sync": "window",
    "strict": None,
    "boundaries": None,
}


@pytest.mark.parametrize("option", options.OPTIONS, ids=lambda option: option.flag)
def test_the_parser_has_it_and_gives_a_value_of_its_kind(option):
    word = GIVEN.get(option.name, "8")
    given = build_parser().parse_args(["run", option.flag, *([word] if word else [])])
    value = getattr(given, option.name)
    values = value if option.several else [value]
    assert values and all(type(each) is option.kind for each in values)


def test_no_option_of_the_parser_that_the_checks_are_told_is_left_out():
    """What is here and in no table would be parsed, and nothing would come of it."""
    others = {"site", "mpis", "environment", "time_limit", "oversubscribe", "set_env"}
    others |= {"launches", "confirm_after", "confirm_within", "json", "references", "force"}
    others |= {"help", "help_all"}
    others |= {"family"}  # which stands for names of routines
    others |= {"failed"}  # which takes all options from another session
    others |= {"junit", "openmetrics", "on_failure"}
    (commands,) = (
        action for action in build_parser()._actions if isinstance(action, argparse._SubParsersAction)
    )
    run = {action.dest for action in commands.choices["run"]._actions}
    assert {option.name for option in options.OPTIONS} == run - others


def test_what_chooses_is_a_part_of_a_case_of_the_same_kind():
    for option in options.CHOOSING:
        assert type(option.value_of(case())) is option.kind
    measured = {option.part for option in options.CHOOSING}
    assert {field.name for field in fields(Case)} - measured == {"system", "environment"}


def test_flags_variables_and_parts_are_each_named_once():
    for names in zip(*((option.flag, option.variable) for option in options.OPTIONS), strict=True):
        assert len({*names}) == len(options.OPTIONS)


def test_what_was_chosen():
    assert options.BYTES.wanted({"sizes": [8, 16]}) == (8, 16)
    assert options.BYTES.wanted({}) == options.BYTES.wanted({"sizes": []}) == ()
    assert options.CACHE_STATE.wanted({"cache": "warm"}) == ("warm",)
    assert options.CACHE_STATE.wanted({}) == ()
    assert options.PEERS.value_of(case(peer=3)) == 3


def test_the_programs_that_have_an_option_or_a_value():
    assert options.TRIAL_COUNT.programs_with(21) == ("mpicost", "kernels", "gpu")
    assert options.CACHE_STATE.programs_with("flush") == ("mpicost",)
    assert options.CACHE_STATE.programs_with("rotate") == ("imb",)
    assert (
        options.CACHE_STATE.programs_with("warm") == options.CACHE_STATE.programs_with(None) == tuple(PROGRAMS)
    )
    assert options.BYTES.programs_with([8]) == tuple(PROGRAMS)


@pytest.mark.parametrize(
    ("choice", "said"),
    [
        ({"colour": 1}, "choice.colour: is not a setting of a check"),
        *(({"sizes": sizes}, r"choice.sizes: .* is not a list of int") for sizes in (8, ["8"], [True], None)),
        *(({"trials": trials}, r"choice.trials: .* is not int") for trials in ("51", [51], 51.0)),
    ],
    ids=str,
)
def test_a_choice_of_an_unknown_name_or_another_type_is_refused(choice, said: str):
    options.check_choice({"sizes": [8], "trials": 51})
    with pytest.raises(ValueError, match=said):
        options.check_choice({"sizes": [8], "trials": 51} | choice)


def test_what_is_wanted_of_a_routine_is_one_launch_and_is_found_at_its_place():
    one = options.WantedRoutine("mpicost", "cpu", "2x2", "bcast", (16, 8))
    others = [replace(one, sizes=(8, 80), peers=(1,)), replace(one, layout="4x4")]
    choice = json.loads(json.dumps(options.build_wanted_choice([one, *others])))[options.WANTED]
    wanted = replace(one, sizes=(8, 16, 80), peers=(1,))
    assert options.select_wanted(choice, program="mpicost", layout="2x2") == {"bcast": wanted}
    assert options.select_wanted(choice, layout="8x8") == {}
    assert options.select_wanted(None) is None
