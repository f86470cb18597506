"""mpicost on MPIs that lie, and what stands between its stamps. Faults are planted with PMPI."""

import re
from pathlib import Path

import pytest

from tests.support.faults import Declared, plants
from tests.support.mpicost import FAMILIES, TINY, Ended, library, lines, preload, program, read

TRIALS = 5
ROUTINES = ("--routine", "pingpong,bcast,allgather,allreduce_max")
#: fault: (routine that suffers, rank that notices, element it names among 10 of 80 bytes)
FAULTS = {"bcast": ("bcast", 1, 9), "recv": ("pingpong", 1, 9), "overrun": ("allreduce_max", 1, 10)}
#: call number from which the fault shows, and when mpicost must notice
MOMENTS = {0: "before timing", 1: "in trial 1", 4: "in trial 4", TRIALS + 1: "after timing"}
#: All moments with one MPI, all but one with the other: what looks at the data is mpicost.
PLACES = [("mpich", *each) for each in MOMENTS.items()] + [
    ("openmpi", call, MOMENTS[call]) for call in (0, 4, TRIALS + 1)
]


def faulty(family: str, fault: str, first: int, file: Path, once: bool = False) -> Ended:
    """Measure a few cases of 80 bytes on an MPI with a fault from its call number ``first`` on."""
    variables = {"PLUMBLINE_FAULT": fault, "PLUMBLINE_FAULT_AFTER": str(first)}
    if once:
        variables["PLUMBLINE_FAULT_BEFORE"] = str(first + 1)
    once_each = ("--trials", str(TRIALS), "--rounds", "1")  # calls are counted
    options = (*TINY, *ROUTINES, "--bytes", "80", "--peers", "1", *once_each)
    wrapper = preload(library(family, "wrong_data"))
    return program(family).run(3, *options, "--output", str(file), wrapper=wrapper, variables=variables)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fault_library_alone_does_no_harm(family: str, tmp_path: Path) -> None:
    ended = faulty(family, "none", 0, tmp_path / "out.jsonl")
    assert (ended.status, ended.complaints) == (0, [])


@plants("data", "a wrong element, or one too many, before, in or after the timed calls",
        "MPI under mpicost itself", "", 1, "bytes 80: rank 1 index ")  # fmt: skip
@pytest.mark.parametrize(("family", "first", "moment"), PLACES)
@pytest.mark.parametrize("fault", FAULTS)
def test_wrong_data_is_noticed_and_named(family, fault, first, moment, tmp_path, declared):
    routine, rank, index = FAULTS[fault]
    file = tmp_path / "out.jsonl"
    ended = faulty(family, fault, first, file)
    declared.check((), ended.status, ended.complaints)
    assert len(ended.complaints) == 1
    assert f"{routine} peer " in ended.complaints[0]
    assert f"bytes 80: rank {rank} index {index}: " in ended.complaints[0]
    assert ended.complaints[0].endswith(moment)
    records = read(file)
    (wrong,) = [case for case in records.cases if not case["verified"]]
    assert [case["wrong"] for case in records.cases if "wrong" in case] == [wrong["wrong"]]
    expected = (routine, rank, index)
    assert (wrong["routine"], wrong["wrong"]["rank"], wrong["wrong"]["index"]) == expected
    values = re.search(r"index \d+: (\S+) instead of (\S+),", ended.complaints[0])
    assert values is not None
    expected = [wrong["wrong"]["received"], wrong["wrong"]["expected"]]
    assert [float(each) for each in values.groups()] == expected
    trial = wrong["wrong"]["trial"]
    assert moment == (f"in trial {trial}" if trial else f"{wrong['wrong']['moment']} timing")
    assert len(records.cases) == 4
    assert not records.end["verified"]
    assert "WRONG DATA" in next(row for row in ended.output.splitlines() if routine in row)


@plants("data", "a wrong element in one trial of 5", "MPI under mpicost itself", "", 1, "in trial ")
@pytest.mark.parametrize("call", [1, 3, TRIALS])
def test_a_single_wrong_trial_is_noticed(call: int, tmp_path, declared):
    ended = faulty("mpich", "bcast", call, tmp_path / "out.jsonl", once=True)
    declared.check((), ended.status, ended.complaints)
    assert ended.complaints[0].endswith(f"in trial {call}")


@plants("data", "calls that do nothing and say that all went well", "MPI under mpicost itself", "", 1,
        "index 0: -1 ")  # fmt: skip
@pytest.mark.parametrize(("family", "first", "moment"), PLACES)
def test_an_mpi_that_stops_working_is_noticed_by_every_rank(
    family: str, first: int, moment: str, tmp_path: Path, declared: Declared
) -> None:
    """The right result of the call before must not count for the one that did nothing."""
    file = tmp_path / "out.jsonl"
    ended = faulty(family, "skip", first, file)
    declared.check((), ended.status, ended.complaints)
    assert len(ended.complaints) == 3
    assert all("allgather" in line and "index 0: -1 " in line for line in ended.complaints)
    assert all(line.endswith(moment) for line in ended.complaints)
    (wrong,) = [case["wrong"] for case in read(file).cases if not case["verified"]]
    assert (wrong["rank"], wrong["index"], wrong["received"]) == (0, 0, -1)


@pytest.mark.long
@pytest.mark.parametrize("family", FAMILIES)
def test_trials_that_miss_their_window_are_marked_and_left_out(family: str, tmp_path: Path) -> None:
    """Rank 1 hears of some windows 30 ms late, three times longer than any window is wide.

    A rank that has no core of its own may miss all the others too.
    """
    file = tmp_path / "out.jsonl"
    options = (*TINY, "--sync", "window", "--routine", "bcast:8", "--output", str(file))
    options = (*options, "--trials", "100", "--rounds", "1")  # calls are counted
    variables = {"PLUMBLINE_FAULT_AFTER": "20", "PLUMBLINE_FAULT_BEFORE": "100", "PLUMBLINE_FAULT_EVERY": "5"}
    wrapper = preload(library(family, "late_start"))
    ended = program(family).run(2, *options, wrapper=wrapper, variables=variables)
    assert ended.status in (0, 4), ended.complaints
    _, case, *_ = lines(file)
    planted = [late for late, skew in zip(case["late"], case["skew"], strict=True) if skew > 0.015]
    assert len(planted) >= 2
    assert all(planted)
    if ended.status == 0:
        assert case["kept"] + case["removed"] == 100 - 1 - sum(case["late"][1:])


@plants("programs", "a rank that comes too late to each trial", "mpicost itself", "", 4, "bcast")
@pytest.mark.parametrize("family", FAMILIES)
def test_case_whose_every_trial_is_late_fails(family: str, tmp_path: Path, declared: Declared):
    file = tmp_path / "out.jsonl"
    options = (*TINY, "--sync", "window", "--routine", "bcast:8", "--trials", "4")
    variables = {"PLUMBLINE_FAULT_AFTER": "0", "PLUMBLINE_FAULT_BEFORE": "1000"}
    ended = program(family).run(
        2,
        *options,
        *("--output", str(file)),
        wrapper=preload(library(family, "late_start")),
        variables=variables,
    )
    assert len(ended.complaints) == 1
    declared.check((), ended.status, ended.complaints)
    case = lines(file)[-1]
    assert case["record"] == "case"
    assert case["late"] == [1, 1, 1, 1]
    assert "headline" not in case


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("sync", "call"), [("dissemination", "Sendrecv"), ("barrier", "Barrier"), ("window", "Sendrecv")]
)
def test_nothing_but_the_routine_stands_between_the_stamps(family, sync, call, tmp_path):
    """Follows rank 0 through a launch: two clock readings enclose the routine, a synchroniser both."""
    trace = tmp_path / "trace"
    options = (*TINY, "--routine", "bcast", "--bytes", "8", "--trials", "3", "--sync", sync)
    ended = program(family).run(
        2, *options, wrapper=preload(library(family, "trace")), variables={"PLUMBLINE_TRACE": str(trace)}
    )
    assert ended.status in (0, 4), ended.complaints
    events = "".join(f"<{line}>" for line in trace.read_text().splitlines())
    events = re.sub(r"<begin (\w+)>(?:(?!<end \1>).)*<end \1>", r"<\1>", events)
    enclosed = events.count("<clock><Bcast><clock>")
    assert enclosed == 3
    assert events.count("<Bcast>") == 3 + 2  # and the two that are verified, without stamps
    start = f"<{call}>" if sync != "window" else "(?:<clock>)+"
    assert len(re.findall(f"{start}<clock><Bcast><clock><{call}>", events)) == 3
