"""What mpicost sends for itself grows no faster than log2 p on any rank: counted, in simulated time."""

import math
from pathlib import Path

import pytest

from suite.benchmark.simulator import count_messages, torus
from tests.support.simgrid import simulated, simulator

COUNTS = (8, 16, 64)
TRIALS = 3
CALLS = TRIALS + 2  #: two more are verified and not timed
#: routine with a choice of peers, and the messages of one call that are not inside of a collective
ROUTINES = {"bcast": ((), 0), "pingpong": (("--peers", "1"), 2), "tournament": (("--peers", "2"), 2)}
SIZES = ("8", "16", "24", "32")


def direct_messages(routine: str, processes: int, sizes: tuple[str, ...], file: Path) -> list[int]:
    """Messages of each rank in a launch, but for those inside of collectives."""
    peers, _ = ROUTINES[routine]
    options = ("--cache", "warm", "--trials", str(TRIALS), "--seed", "1", *peers)
    options = (*options, "--routine", ":".join((routine, *sizes)), "--output", str(file))
    return simulator().trace(simulated().build / "mpicost", processes, *options).direct


@pytest.mark.parametrize("routine", ROUTINES)
def test_messages_of_a_case(routine: str, tmp_path: Path) -> None:
    """The difference between launches of one case and of four: the start of the program is in both."""
    most = {}
    for processes in COUNTS:
        one = direct_messages(routine, processes, SIZES[:1], tmp_path / "a")
        four = direct_messages(routine, processes, SIZES, tmp_path / "b")
        cases = len(SIZES) - 1
        own = [(b - a) / cases for a, b in zip(one, four, strict=True)]
        most[processes] = max(own) - CALLS * ROUTINES[routine][1]
    check_growth(most)


def test_messages_of_the_start(tmp_path: Path) -> None:
    """With those of one case. Clocks and places of all ranks come to rank 0 here."""
    check_growth({p: max(direct_messages("bcast", p, SIZES[:1], tmp_path / "a")) for p in COUNTS})


def check_growth(most: dict[int, float]) -> None:
    """No more than in proportion to log2 p."""
    least = min(most)
    for processes, messages in most.items():
        allowed = most[least] * math.log2(processes) / math.log2(least)
        assert messages <= allowed, most


def test_every_message_is_counted_once(tmp_path: Path) -> None:
    """A right shift is a message sent and one received on each rank, in one call; a bcast to three ranks
    of four is sent three times, inside of the call."""
    program = simulated().build / "mpicost"
    options = ("--cache", "warm", "--seed", "1", "--rounds", "1")

    def counted(routine: str, trials: int) -> tuple[list[int], int]:
        selected = ("--routine", routine, "--trials", str(trials))
        messages = simulator().trace(program, 4, *options, *selected)
        return messages.direct, sum(messages.inside)

    barrier = 2 * 2  # rounds, each with a message sent and one received
    for routine, direct, inside in (("rightshift:8", 2, 0), ("bcast:8", 0, 2 * 3)):
        few, many = counted(routine, 2), counted(routine, 7)
        expected = 5 * (direct + 2 * barrier)
        assert [b - a for a, b in zip(few[0], many[0], strict=True)] == [expected] * 4
        assert many[1] - few[1] == 5 * inside


def test_a_call_of_unknown_messages_is_not_counted_as_none() -> None:
    line = '5 7 2 PMPI_Isend "1 0 0"\n'
    with pytest.raises(ValueError, match="PMPI_Isend"):
        count_messages([line], 1)
    assert count_messages(['5 7 2 PMPI_Bcast "1 0 0"\n', "12 0.1 2 1 7\n"], 1).direct == [0]


@pytest.mark.parametrize(
    ("processes", "lengths"),
    [(1, "2,2,2"), (8, "2,2,2"), (9, "2,2,4"), (128, "4,4,8"), (512, "8,8,8"), (513, "8,8,16")],
)
def test_machine_is_as_large_as_it_must_be(processes: int, lengths: str, tmp_path: Path) -> None:
    words = torus("smpirun", tmp_path, processes).launcher
    platform, hosts = (
        Path(words[words.index(option) + 1]).read_text() for option in ("-platform", "-hostfile")
    )
    count = math.prod(int(length) for length in lengths.split(","))
    assert f'topo_parameters="{lengths}"' in platform
    assert f'radical="0-{count - 1}"' in platform
    assert hosts.split() == [f"n{number}" for number in range(count)]
