"""Options of ``compare`` that only it has, and those that make no sense together."""

import argparse
from pathlib import Path

import pytest

from postprocess.features.compare.command import parse_plant
from postprocess.main import main
from tests.support.paths import ROOT


@pytest.mark.parametrize(
    ("text", "is_taken"),
    [
        ("slower-10:bcast", True),
        ("slower-10:alltoall", True),
        ("slower-10", False),
        ("slow:bcast", False),
        ("slower-10:bcast,alltoall", False),
        ("slower-10:control_timer", False),
    ],
)
def test_a_plant_that_would_delay_nothing_is_refused(text: str, is_taken: bool) -> None:
    if is_taken:
        assert parse_plant(text) == text
        return
    with pytest.raises(argparse.ArgumentTypeError):
        parse_plant(text)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--history mpich --new-env A=b", "--new-env: a history has no two sides"),
        ("--history mpich --stored", "--stored: a history has no two sides"),
        ("--history openmpj", "--history openmpj: is not a family or release of one; choose of"),
        ("--stored a b --seconds 9", "--seconds: nothing is measured with --stored"),
        ("--stored a b --new-env A=b", "--new-env: nothing is measured with --stored"),
    ],
)
def test_options_that_contradict_each_other_are_told_in_one_line(tmp_path: Path, words, said, capsys) -> None:
    assert main(str(ROOT), str(tmp_path), ["compare", *words.split()]) == 2
    err = capsys.readouterr().err
    assert said in err and err.count("\n") == 1
