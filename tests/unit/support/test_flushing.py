"""No test flushes by the machine's cache without saying so: its duration would be the cache's."""

from pathlib import Path

import pytest

from postprocess.base.errors import UsageError
from postprocess.main import COMMANDS, build_parser
from tests.support.mpicost import TINY, Program
from tests.support.plumbline_runner import FLUSHING, Workshop, unflushed

WARM_ANYWAY = {"links"}
STARTS_NOTHING = {"list"}
HANDS_ON = {"test"}  #: all of its words go to pytest


def has_states_of_the_caches(command: str) -> bool:
    """Whether a command has the option ``--cache``."""
    try:
        build_parser().parse_args([command, "--cache", "warm"])
    except UsageError:
        return False
    return True


def test_every_command_that_may_flush_is_known() -> None:
    found = {name for name in COMMANDS if has_states_of_the_caches(name)}
    assert found == {*FLUSHING, *WARM_ANYWAY, *STARTS_NOTHING, *HANDS_ON}


@pytest.mark.parametrize("command", FLUSHING)
def test_a_session_flushes_only_if_its_test_says_so(command: str, tmp_path: Path) -> None:
    assert unflushed([command, "--strict"]) == [command, "--strict", "--cache", "warm"]
    for told in (["--cache", "flush"], ["--cache=flush"], ["--cache", "rotate"]):
        assert unflushed([command, *told]) == [command, *told]
    words = Workshop(tmp_path).command(command)
    assert words[words.index("--cache") + 1] == "warm"


def test_other_commands_stay_as_they_are() -> None:
    assert unflushed(["doctor"]) == ["doctor"]


@pytest.mark.parametrize("options", [(), ("--trials", "2"), ("--cache", "flush")])
def test_a_launch_that_does_not_say_what_it_flushes_is_refused(options: tuple[str, ...]) -> None:
    nothing = Program(None, Path("/nonexistent"))  # it is never started
    with pytest.raises(AssertionError, match="add \\*TINY"):
        nothing.run(2, *options)
    with pytest.raises(AttributeError):  # past the refusal
        nothing.run(2, *options, *TINY)
